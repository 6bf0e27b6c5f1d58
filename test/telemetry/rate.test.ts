import fc from 'fast-check';
import { expect, test } from 'vitest';
import { createRate } from '../../src/telemetry/telemetry.js';

test('counts what was noted in the last 60 seconds, to the second', () => {
  const step = fc.record({ afterMs: fc.nat(40_000), times: fc.nat(5) });
  fc.assert(
    fc.property(fc.nat(100_000), fc.array(step, { maxLength: 30 }), (begin, steps) => {
      let now = begin;
      const noted: number[] = [];
      const rate = createRate({ monotonic: () => now });
      for (const { afterMs, times } of steps) {
        now += afterMs;
        for (let time = 0; time < times; time += 1) {
          rate.note();
          noted.push(Math.floor(now / 1000));
        }
        expect(rate.perMinute()).toBe(noted.filter((second) => second > Math.floor(now / 1000) - 60).length);
      }
    }),
  );
});
