/** How often something happened in the last minute, to the second. Not a metric: those only count. */
import type { Clock } from '../kernel/clock.js';

export interface Rate {
  note(): void;
  /** How often in the last 60 seconds. */
  perMinute(): number;
}

const seconds = 60;

export function createRate(clock: Pick<Clock, 'monotonic'>): Rate {
  /** What happened in each of the last seconds; a second and the one a minute later have the same place. */
  const counts = Array.from({ length: seconds }, () => 0);
  let last = Math.floor(clock.monotonic() / 1000);

  const moveOn = (): number => {
    const now = Math.floor(clock.monotonic() / 1000);
    for (let second = Math.max(last, now - seconds) + 1; second <= now; second += 1) counts[second % seconds] = 0;
    last = now;
    return now % seconds;
  };

  return {
    note() {
      const place = moveOn();
      counts[place] = (counts[place] ?? 0) + 1;
    },
    perMinute() {
      moveOn();
      return counts.reduce((sum, count) => sum + count, 0);
    },
  };
}
