/**
 * Time as a dependency, so that decisions and tests own it. Loops are in `background.ts`.
 */

export interface Clock {
  /** Wall clock, milliseconds since the Unix epoch. */
  now(): number;
  /** Monotonic milliseconds, for durations: never goes back. */
  monotonic(): number;
}

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
};

/** RFC 3339, UTC, milliseconds: the only form of a time on the wire of REST. */
export function timestamp(milliseconds: number): string {
  // Many events are of the same millisecond.
  if (milliseconds !== last.milliseconds) last = { milliseconds, text: new Date(milliseconds).toISOString() };
  return last.text;
}

let last = { milliseconds: 0, text: new Date(0).toISOString() };
