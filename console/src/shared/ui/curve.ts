/** What a curve is made of: its ranges, the times of its points, its values at them. Pure. */
import type { Schemas } from '../api/client.js';

export type Point = Schemas['HistoryPoint'];
export type Step = Schemas['History']['step'];

/** Something that was done, such as a deploy. */
export interface Mark {
  /** In seconds since 1970. */
  readonly at: number;
}

/** The ranges, by their words in the address. */
export const spans = ['15m', '1h', 'day', '30d'] as const;
export type Span = (typeof spans)[number];

const minute = 60;
const hour = 3_600;

export const stepSeconds: Readonly<Record<Step, number>> = { '1m': minute, '5m': 5 * minute, '1h': hour };

export const ranges: Readonly<Record<Span, { readonly step: Step; readonly seconds: number }>> = {
  '15m': { step: '1m', seconds: 15 * minute },
  '1h': { step: '1m', seconds: hour },
  day: { step: '5m', seconds: 24 * hour },
  '30d': { step: '1h', seconds: 30 * 24 * hour },
};

/** @param now in seconds @returns the beginning of each step of the range, the newest of which still lasts */
export function timesOf(span: Span, now: number): readonly number[] {
  const { step, seconds } = ranges[span];
  const each = stepSeconds[step];
  const last = Math.floor(now / each) * each;
  return Array.from({ length: seconds / each }, (_, index) => last - seconds + (index + 1) * each);
}

/**
 * The value at each time; null where nothing was reported.
 * @param of given how many seconds of the point's step have passed: the newest has not lasted as long as the others
 */
export function valuesAt(
  times: readonly number[],
  points: readonly Point[],
  now: number,
  of: (point: Point, lasted: number) => number | null,
): readonly (number | null)[] {
  const byTime = new Map(points.map((point) => [Date.parse(point.at) / 1_000, point]));
  const step = (times[1] ?? 0) - (times[0] ?? 0);
  return times.map((time) => {
    const point = byTime.get(time);
    return point === undefined ? null : of(point, Math.max(1, Math.min(step, now - time)));
  });
}

/**
 * The places of values that are not one of three in a row: a line through fewer is narrower than a dot, and would show
 * nothing in a node's first ten minutes.
 */
export function dotsOf(values: ArrayLike<number | null | undefined>): number[] {
  const known = (at: number): boolean => (values[at] ?? null) !== null;
  return Array.from(values, (_, at) => at).filter(
    (at) => known(at) && ![at - 2, at - 1, at].some((first) => [first, first + 1, first + 2].every(known)),
  );
}

/**
 * Shares without the newest, unless it is the first: its step still lasts, and an agent tells of the last seconds only
 * later, so it would seem to fall.
 */
export const onceOver = (shares: readonly (number | null)[]): readonly (number | null)[] =>
  (shares.at(-2) ?? null) === null ? shares : [...shares.slice(0, -1), null];

/** The newest value that is known. */
export function lastOf(values: readonly (number | null)[]): number | null {
  return values.findLast((value) => value !== null) ?? null;
}
