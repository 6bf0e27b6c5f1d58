import fc from 'fast-check';
import { expect, test } from 'vitest';
import { createRecentSums } from '../../src/reports/recent-sums.js';

test('sums what was noted in the last places, whatever was noted before', () => {
  const step = fc.record({ afterMs: fc.nat(40_000), times: fc.nat(5) });
  fc.assert(
    fc.property(fc.nat(100_000), fc.array(step, { maxLength: 30 }), (begin, steps) => {
      let now = begin;
      const noted: number[] = [];
      const sums = createRecentSums({ monotonic: () => now }, ['some', 'other'], { places: 60, placeMs: 1000 });
      for (const { afterMs, times } of steps) {
        now += afterMs;
        for (let time = 0; time < times; time += 1) {
          sums.note({ some: 1, other: 3, unknown: 7 });
          noted.push(Math.floor(now / 1000));
        }
        const some = noted.filter((second) => second > Math.floor(now / 1000) - 60).length;
        expect(sums.sums()).toEqual({ some, other: 3 * some });
      }
    }),
  );
});
