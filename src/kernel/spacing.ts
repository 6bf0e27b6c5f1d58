/** Rate limit for rare events: not sooner than `everyMs` after the last, and at most `perHour`. */
export const hourMs = 60 * 60_000;

export interface Spacing {
  readonly everyMs: number;
  readonly perHour: number;
}

/** Milliseconds until `ms` have passed since a time; 0 if they have. If the clock was set back, at most `ms`. */
export function remainingMs(time: number | undefined, ms: number, now: number): number {
  return time === undefined ? 0 : Math.min(ms, Math.max(0, time + ms - now));
}

/**
 * Milliseconds until it may happen again; 0 if it may now.
 * @param times when it happened, oldest first, in milliseconds
 */
export function waitMs(times: readonly number[], now: number, { everyMs, perHour }: Spacing): number {
  return Math.max(remainingMs(times.at(-1), everyMs, now), remainingMs(times.at(-perHour), hourMs, now));
}

/** The times with one added, without those that no longer count. */
export function withTime(times: readonly number[], time: number, { perHour }: Spacing): readonly number[] {
  return [...times, time].slice(-perHour);
}
