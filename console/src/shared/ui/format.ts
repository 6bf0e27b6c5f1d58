/**
 * Figures as people read them, with units, in the reader's zone. The texts are English until there are translations, and so
 * are figures and dates, whatever the browser's language.
 */

const language = 'en-GB';
const count = new Intl.NumberFormat(language);
const oneDigit = new Intl.NumberFormat(language, { maximumFractionDigits: 1 });
const share = new Intl.NumberFormat(language, { style: 'percent', maximumFractionDigits: 0 });
const relative = new Intl.RelativeTimeFormat(language);
const dates = {
  exact: new Intl.DateTimeFormat(language, { dateStyle: 'medium', timeStyle: 'long' }),
  clock: new Intl.DateTimeFormat(language, { timeStyle: 'medium' }),
  short: new Intl.DateTimeFormat(language, { day: 'numeric', month: 'short', hour: '2-digit', minute: '2-digit' }),
  shortDate: new Intl.DateTimeFormat(language, { dateStyle: 'medium' }),
  minute: new Intl.DateTimeFormat(language, { hour: '2-digit', minute: '2-digit' }),
  day: new Intl.DateTimeFormat(language, { day: 'numeric', month: 'short' }),
  date: new Intl.DateTimeFormat(language, { dateStyle: 'full' }),
} as const;

export const none = '–';

/** Where something listens; an IPv6 address stands in brackets. */
export const formatAddress = (host: string, port: number): string =>
  `${host.includes(':') ? `[${host}]` : host}:${port}`;

/** A listener, such as `tcp 0.0.0.0:443`. */
export const formatListener = (transport: string, host: string, port: number): string =>
  `${transport} ${formatAddress(host, port)}`;

export const formatCount = (value: number): string => count.format(value);

/** How often something happens; small values count too. */
export const formatRate = (value: number): string => oneDigit.format(value);

/** @param value 0 to 1 */
export const formatShare = (value: number): string => share.format(value);

export function formatBytes(bytes: number): string {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];
  const power = bytes < 1 ? 0 : Math.min(Math.floor(Math.log2(bytes) / 10), units.length - 1);
  return `${oneDigit.format(bytes / 1024 ** power)} ${units[power]}`;
}

const spans = [
  ['year', 31_536_000],
  ['month', 2_592_000],
  ['day', 86_400],
  ['hour', 3_600],
  ['minute', 60],
] as const;

/** @param seconds how long something has lasted */
export function formatDuration(seconds: number): string {
  const [unit, length] = spans.find(([, span]) => seconds >= span) ?? (['second', 1] as const);
  return `${count.format(Math.floor(seconds / length))} ${unit}${Math.floor(seconds / length) === 1 ? '' : 's'}`;
}

/** A short time in the larger unit that fits, such as `12.3 ms` or `1.5 s`. */
export const formatMilliseconds = (milliseconds: number): string =>
  milliseconds < 1_000 ? `${oneDigit.format(milliseconds)} ms` : `${count.format(milliseconds / 1_000)} s`;

/** @param as `exact` with date, time and zone; `short`, `clock`, `minute` and `day` are parts of that */
export const formatTime = (at: string | number, as: keyof typeof dates = 'exact'): string =>
  dates[as].format(new Date(at));

/** `3 minutes ago`, `in 12 days`. */
export function formatRelative(at: string, now: number): string {
  const seconds = (Date.parse(at) - now) / 1_000;
  const span = spans.find(([, length]) => Math.abs(seconds) >= length);
  // The clocks of reader and service differ a little.
  if (span === undefined)
    return Math.abs(seconds) < 10 ? 'just now' : relative.format(Math.trunc(seconds / 10) * 10, 'second');
  return relative.format(Math.trunc(seconds / span[1]), span[0]);
}
