/** Turns: who shares one, how long it gathers, and how a caller leaves it early. */
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { createTurns } from '../../src/kernel/turns.js';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const clock = { monotonic: () => performance.now() };

it('ends at the same moment for all who come while it gathers', async () => {
  const turns = createTurns({ clock, everyMs: 25 });
  const ended: string[] = [];
  void turns.next().then(() => ended.push('first'));
  await vi.advanceTimersByTimeAsync(20);
  void turns.next().then(() => ended.push('second'));
  await vi.advanceTimersByTimeAsync(4);
  expect(ended).toEqual([]);
  await vi.advanceTimersByTimeAsync(1);
  expect(ended).toEqual(['first', 'second']);
});

it('gathers longer after a turn of many, up to a bound, and as at first after a quiet time', async () => {
  const turns = createTurns({ clock, everyMs: 10, busyMs: 40, callersPerStep: 2 });
  const lasts = async (callers: number): Promise<number> => {
    const began = performance.now();
    const all = Array.from({ length: callers }, () => turns.next());
    await vi.advanceTimersToNextTimerAsync();
    await Promise.all(all);
    return performance.now() - began;
  };
  expect([await lasts(1), await lasts(4), await lasts(100), await lasts(1), await lasts(1)]).toEqual([
    10, 10, 20, 40, 10,
  ]);
  await lasts(100);
  await vi.advanceTimersByTimeAsync(41);
  expect(await lasts(1)).toBe(10);
});

it('is over at once for a caller whose signal aborts, and goes on for the others', async () => {
  const turns = createTurns({ clock, everyMs: 1_000 });
  const stop = new AbortController();
  let others = false;
  void turns.next().then(() => (others = true));
  const leaving = turns.next(stop.signal);
  stop.abort();
  await leaving;
  await turns.next(stop.signal);
  expect(others).toBe(false);
  await vi.advanceTimersByTimeAsync(1_000);
  expect(others).toBe(true);
});
