/**
 * The traffic of the listeners at which chains begin, now: how much their sums over processes have grown in the last minutes. A
 * few samples of each are kept with the node's entry. Pure. Implements `docs/contract/rest.md#l4-chains`, `traffic`.
 */
import { countersIn, listenerCounters } from './counted-rows.js';
import { countedOf } from './listener-table.js';
import type { Entry } from './entry.js';
import type { ListenerRate } from './port.js';

const overMs = 5 * 60_000;
/** Samples are this far apart, or as far as reports are. */
const apartMs = 60_000;
const fields = 3;

type Reported = Readonly<Pick<Entry, 'beat' | 'listeners'>>;

/**
 * Keeps a sample of each listener, if one is due.
 * @param last the report before the newest one
 * @param wanted the listeners to sample
 */
export function sampleRates(entry: Pick<Entry, 'samples'>, last: Reported, wanted: ReadonlySet<string>): void {
  if (wanted.size === 0) {
    entry.samples = undefined;
    return;
  }
  const samples = (entry.samples ??= new Map());
  const at = last.beat?.at;
  if (at === undefined) return;
  let sums: ReturnType<typeof sumsOf> | undefined;
  for (const key of wanted) {
    const before = samples.get(key) ?? [];
    // A sample from a clock that was ahead would hold up all others.
    const known = (before.at(-fields) ?? 0) > at ? [] : before;
    if (at - (known.at(-fields) ?? Number.NEGATIVE_INFINITY) < apartMs) continue;
    const sum = (sums ??= sumsOf(last))(key);
    if (sum === undefined) continue;
    // A new list, because one that grows reserves twice its size.
    samples.set(key, [...known.slice((known[0] ?? 0) < at - overMs ? fields : 0), at, ...sum]);
  }
  if (samples.size > wanted.size) for (const key of samples.keys()) if (!wanted.has(key)) samples.delete(key);
}

/** The growth up to the last report; null before two reports, and once the last one is so old that it says nothing about now. */
export function rateOf(entry: Readonly<Entry>, key: string, now: number): ListenerRate | null {
  const [at, samples] = [entry.beat?.at, entry.samples?.get(key)];
  if (at === undefined || samples === undefined || now - at > overMs + entry.offlineAfterMs) return null;
  // Where reports are rare, only the newest sample may be left, however old.
  const recent = samples.findIndex((value, index) => index % fields === 0 && value >= at - overMs);
  const [since = at, bytes = 0, sessions = 0] = samples.slice(recent === -1 ? -fields : recent);
  const sum = at <= since ? undefined : sumsOf(entry)(key);
  if (sum === undefined) return null;
  const seconds = (at - since) / 1_000;
  return {
    bytes_per_sec: rounded((sum[0] - bytes) / seconds),
    sessions_per_min: rounded((60 * (sum[1] - sessions)) / seconds),
  };
}

const rounded = (rate: number): number => Math.round(Math.max(0, rate) * 100) / 100;

/** The bytes in both directions and the sessions of a listener; undefined for one that was not reported with both. */
function sumsOf({ listeners }: Reported): (key: string) => readonly [bytes: number, sessions: number] | undefined {
  if (listeners === undefined) return () => undefined;
  const { table, totals } = listeners;
  const counters = countersIn(countedOf(table), listenerCounters.length);
  return (key) => {
    const before = totals.before.get(key);
    const sums = counters(key)?.map((counter, column) => counter + (before?.[listenerCounters[column] ?? ''] ?? 0));
    const [bytes_in = Number.NaN, bytes_out = Number.NaN, sessions = Number.NaN] = sums ?? [];
    return Number.isNaN(bytes_in + bytes_out + sessions) ? undefined : [bytes_in + bytes_out, sessions];
  };
}
