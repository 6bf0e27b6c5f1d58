/** A clock that moves only when a test says so. */
import type { Clock } from '../../src/kernel/clock.js';

export interface ManualClock extends Clock {
  advance(milliseconds: number): void;
  /** Sets the wall clock alone, ahead or back. */
  jump(milliseconds: number): void;
}

export function createManualClock(start = Date.UTC(2025, 0, 1)): ManualClock {
  let [elapsed, jumped] = [0, 0];
  return {
    now: () => start + elapsed + jumped,
    monotonic: () => elapsed,
    advance(milliseconds) {
      elapsed += milliseconds;
    },
    jump(milliseconds) {
      jumped += milliseconds;
    },
  };
}
