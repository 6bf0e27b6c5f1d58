/** The time from the offer of a snapshot until its agent runs it. `docs/how-to/monitor.md`. */
import { expect, test } from 'vitest';
import { createTimeToApplied, type Offers } from '../../src/delivery/time-to-applied.js';

const started = () => {
  const time = createTimeToApplied();
  const offers: Offers = [];
  return {
    ...time,
    offers,
    offer: (generation: number, at: number) => time.offered(offers, generation, at),
    apply: (generation: number, at: number) => time.applied(offers, generation, at),
    /** Number of measured applies, and their seconds together. */
    async measured(): Promise<readonly (number | undefined)[]> {
      const { values } = await time.seconds.get();
      const valueOf = (end: string) => values.find(({ metricName }) => metricName?.endsWith(end) === true)?.value;
      return [valueOf('_count'), valueOf('_sum')];
    },
  };
};

test('counts from the offer of the snapshot that is applied, once', async () => {
  const one = started();
  one.offer(5, 1_000);
  one.offer(5, 1_500);
  one.apply(5, 3_000);
  one.apply(5, 9_000);
  expect(await one.measured()).toEqual([1, 2]);
});

test('counts from the oldest offer that was not applied when edits come faster than an agent applies them', async () => {
  const one = started();
  for (let generation = 1; generation <= 100; generation += 1) one.offer(generation, generation * 100);
  one.apply(100, 20_100);
  expect(await one.measured()).toEqual([1, 20]);
  expect(one.offers).toEqual([]);
});

test('an apply of an older snapshot leaves the newer one to be waited for', async () => {
  const one = started();
  one.offer(1, 0);
  one.offer(2, 4_000);
  one.apply(1, 5_000);
  one.apply(2, 6_000);
  expect(await one.measured()).toEqual([2, 7]);
});

test('a rejected snapshot is not waited for, nor is an apply that nothing was offered for', async () => {
  const one = started();
  one.offer(1, 0);
  one.rejected(one.offers, 1);
  one.apply(1, 5_000);
  expect(await one.measured()).toEqual([0, 0]);
  one.offer(2, 6_000);
  one.apply(2, 7_000);
  expect(await one.measured()).toEqual([1, 1]);
});
