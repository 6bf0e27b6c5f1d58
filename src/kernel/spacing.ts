/** How soon something may happen again that may happen only so often: not sooner than `everyMs`, nor more often than `perHour`. */
export const hourMs = 60 * 60_000;

export interface Spacing {
  readonly everyMs: number;
  readonly perHour: number;
}

/**
 * Milliseconds until it may happen again; 0: now. A clock that was set back makes nobody wait longer than that.
 * @param times when it happened, oldest first, in milliseconds
 */
export function waitMs(times: readonly number[], now: number, { everyMs, perHour }: Spacing): number {
  const until = (time: number | undefined, ms: number): number =>
    time === undefined ? 0 : Math.min(ms, Math.max(0, time + ms - now));
  return Math.max(until(times.at(-1), everyMs), until(times.at(-perHour), hourMs));
}

/** The times with one more, without those that no longer count. */
export function withTime(times: readonly number[], time: number, { perHour }: Spacing): readonly number[] {
  return [...times, time].slice(-perHour);
}
