/** Time as a dependency, so that decisions and tests control it. Loops are in `background.ts`. */
import { limits } from './limits.js';

export interface Clock {
  /** Wall clock: milliseconds since the Unix epoch. */
  now(): number;
  /** Monotonic milliseconds, for durations; never goes back. */
  monotonic(): number;
}

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
};

/** RFC 3339 in UTC with milliseconds: the only time format that REST uses. */
export function timestamp(milliseconds: number): string {
  return new Date(milliseconds).toISOString();
}

/** Whether a time, in ms since the epoch like `now`, is from a clock that was ahead by more than clocks may differ. */
export const isOfFuture = (at: number, now: number): boolean => at > now + limits.clocks.apartMs;
