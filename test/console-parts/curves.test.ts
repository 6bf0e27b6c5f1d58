/** What curves are made of. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  dotsOf,
  lastOf,
  onceOver,
  ranges,
  spans,
  stepSeconds,
  timesOf,
  valuesAt,
  type Point,
} from '../../console/src/shared/ui/curve.js';

const point = (seconds: number, sessions: number): Point => ({
  at: new Date(seconds * 1_000).toISOString(),
  bytes_in: 0,
  bytes_out: 0,
  sessions,
  errors: 0,
  rtt_ms: null,
  online: 1,
});

describe('the times of a range', () => {
  test('given any moment, they are whole steps, end with the step that lasts, and cover the range', () => {
    fc.assert(
      fc.property(fc.constantFrom(...spans), fc.integer({ min: 1e9, max: 4e9 }), (span, now) => {
        const { step, seconds } = ranges[span];
        const each = stepSeconds[step];
        const times = timesOf(span, now);
        expect(times).toHaveLength(seconds / each);
        expect(times.every((time) => time % each === 0)).toBe(true);
        expect(times.at(-1)).toBeLessThanOrEqual(now);
        expect(times.at(-1)! + each).toBeGreaterThan(now);
      }),
    );
  });
});

describe('the values of a curve', () => {
  const now = 1_800_000_030;
  const times = timesOf('15m', now);
  const rate = ({ sessions }: Point, lasted: number): number => sessions / lasted;

  test('given a time that nothing was reported of, it is a gap', () => {
    const values = valuesAt(times, [point(times[3]!, 60), point(times[5]!, 120)], now, rate);
    expect(values.slice(2, 7)).toEqual([null, 1, null, 2, null]);
  });

  test('given the step that still lasts, its rate is over what has passed of it', () => {
    expect(valuesAt(times, [point(times.at(-1)!, 60)], now, rate).at(-1)).toBe(2);
  });

  test('given a share of the step that still lasts, it is not known yet, because an agent tells of it only later', () => {
    const online = [point(times.at(-2)!, 0), { ...point(times.at(-1)!, 0), online: 0.14 }];
    const shares = valuesAt(times, online, now, (one) => one.online);
    expect(onceOver(shares).slice(-2)).toEqual([1, null]);
    expect(onceOver([null, 0.14])).toEqual([null, 0.14]);
  });

  test('given gaps at the end, the last value is the newest that is known', () => {
    expect(lastOf([1, 2, null])).toBe(2);
    expect(lastOf([null, null])).toBeNull();
  });
});

test('values are dots unless three of them are a line', () => {
  expect(dotsOf([])).toEqual([]);
  expect(dotsOf([1, null, 1, 1, null, 1, 1, 1, null, 1])).toEqual([0, 2, 3, 9]);
});
