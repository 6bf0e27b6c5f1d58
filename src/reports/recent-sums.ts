/**
 * Sums over a sliding window: heartbeats of the last minute, traffic of the last five. A ring of short intervals bounds the
 * memory. Nothing is stored. Implements `docs/contract/rest.md#dashboard`, `heartbeats_per_minute` and `last_5m`.
 */
import type { Clock } from '../kernel/clock.js';
import type { Counters } from './process-totals.js';

/** @param names the counters to sum */
export function createRecentSums<N extends string>(
  clock: Pick<Clock, 'monotonic'>,
  names: readonly N[],
  { places, placeMs }: { readonly places: number; readonly placeMs: number },
) {
  const empty = (): Record<N, number> => Object.fromEntries(names.map((name) => [name, 0])) as Record<N, number>;
  const ring = Array.from({ length: places }, empty);
  const nowAt = (): number => Math.floor(clock.monotonic() / placeMs);
  let last = nowAt();

  const moveOn = (): Record<N, number> => {
    const now = nowAt();
    for (let place = Math.max(last, now - places) + 1; place <= now; place += 1) ring[place % places] = empty();
    last = now;
    return (ring[now % places] ??= empty());
  };

  return {
    /** Other names are ignored. */
    note(counters: Counters): void {
      const place = moveOn();
      for (const name of names) place[name] += counters[name] ?? 0;
    },
    /** Over the last `places` intervals, including the current one. */
    sums(): Readonly<Record<N, number>> {
      moveOn();
      const total = empty();
      for (const place of ring) {
        for (const name of names) total[name] = Math.min(total[name] + place[name], Number.MAX_SAFE_INTEGER);
      }
      return total;
    },
  };
}
