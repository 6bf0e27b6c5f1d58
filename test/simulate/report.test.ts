/** What the simulator makes of events and times, without agents. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createArrivals } from '../../scripts/simulate/arrivals.js';
import { liveLine } from '../../scripts/simulate/live-line.js';
import { createSample, histogramOf, timesOf } from '../../scripts/simulate/result.js';
import { histogram, sparkline } from '../../scripts/simulate/text-report.js';

const applied = (nodeId: string, generation: number, at: number) => ({ nodeId, generation, at });

describe('when changes arrive', () => {
  it('an agent has a change with its generation or a later one, and only once', () => {
    const arrivals = createArrivals();
    expect(arrivals.changed('all', 100, 7, ['a', 'b'])).toEqual([]);
    expect(arrivals.applied(applied('a', 6, 105))).toEqual([]);
    expect(arrivals.behind()).toBe(2);
    expect(arrivals.applied(applied('a', 7, 110))).toEqual([{ kind: 'all', tookMs: 10, at: 110 }]);
    expect(arrivals.applied(applied('a', 8, 111))).toEqual([]);
    expect(arrivals.lasts).toEqual([]);
    expect(arrivals.applied(applied('b', 9, 150))).toEqual([{ kind: 'all', tookMs: 50, at: 150 }]);
    expect(arrivals.lasts).toEqual([50]);
    expect(arrivals.behind()).toBe(0);
  });

  it('an agent may have it before the change is answered, but not before it is sent', () => {
    const arrivals = createArrivals();
    arrivals.applied(applied('a', 7, 90));
    arrivals.applied(applied('b', 7, 104));
    arrivals.applied(applied('c', 6, 104));
    expect(arrivals.changed('one', 100, 7, ['a', 'b', 'c'])).toEqual([{ kind: 'one', tookMs: 4, at: 104 }]);
    expect(arrivals.behind()).toBe(1);
  });

  it('one event can bring several changes, as when a push was left out', () => {
    const arrivals = createArrivals();
    arrivals.changed('one', 10, 3, ['a']);
    arrivals.changed('one', 20, 4, ['a']);
    expect(arrivals.applied(applied('a', 4, 30)).map(({ tookMs }) => tookMs)).toEqual([20, 10]);
  });
});

describe('the figures of a report', () => {
  it('are nearest-rank quantiles', () => {
    expect(timesOf([])).toBeNull();
    expect(timesOf(Array.from({ length: 200 }, (_, index) => 200 - index))).toEqual({
      count: 200,
      p50: 100,
      p99: 198,
      max: 200,
    });
  });

  it('have each time in one bucket, which is not below it', () => {
    fc.assert(
      fc.property(fc.array(fc.double({ min: 0, max: 1e6, noNaN: true })), (values) => {
        const buckets = histogramOf(values);
        expect(buckets.reduce((sum, { count }) => sum + count, 0)).toBe(values.length);
        for (const { upToMs } of buckets) {
          const within = buckets.filter((bucket) => bucket.upToMs <= upToMs).reduce((sum, { count }) => sum + count, 0);
          expect(within).toBe(values.filter((value) => value <= upToMs).length);
        }
      }),
    );
  });

  it('come from a sample of bounded size, of which every value is part until it is full', () => {
    const sample = createSample(3, () => 0.99);
    for (const value of [1, 2, 3]) sample.add(value);
    expect(sample.values).toEqual([1, 2, 3]);
    for (let value = 4; value < 100; value += 1) sample.add(value);
    expect(sample.values).toHaveLength(3);
    const replaced = createSample(2, () => 0);
    for (const value of [1, 2, 9]) replaced.add(value);
    expect(replaced.values).toEqual([9, 2]);
  });

  it('are drawn from the lowest to the highest block, in at most the given width', () => {
    expect(sparkline([0, 1, 2, 4])).toBe('▁▃▅█');
    expect(sparkline([0, 0])).toBe('▁▁');
    expect(sparkline([1, null, 2])).toBe('▅ █');
    expect(sparkline(Array.from({ length: 1_000 }, (_, index) => index))).toHaveLength(60);
    expect(
      histogram(
        [
          { upToMs: 1, count: 0 },
          { upToMs: 2, count: 4 },
          { upToMs: 4, count: 1 },
        ],
        8,
      ),
    ).toEqual(['  ≤ 2.0 ms │████████ 4', '  ≤ 4.0 ms │██       1']);
  });

  it('are one line while the simulation runs', () => {
    const second = {
      second: 12,
      connected: 9_980,
      behind: 30,
      applies: 5,
      rejects: 1,
      p50: 12.4,
      p99: 1_840,
      cores: 0.5,
    };
    expect(liveLine(10_000, second, 7, 2)).toBe(
      '12 s  connected 9,980/10,000  converged 9,950  rejects 7  refused 2  applied p50 12 ms, p99 1.8 s  service 0.50 cores',
    );
    expect(liveLine(1, { ...second, p50: null, p99: null, cores: null }, 0, 0)).toMatch(/applied p50 –, p99 –$/);
  });
});
