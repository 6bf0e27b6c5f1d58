/** The shared delay: who shares it, and how a caller leaves it early. */
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { createSharedDelay } from '../../src/commands/shared-delay.js';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

it('ends at the same moment for all who come while it gathers', async () => {
  const delay = createSharedDelay(25);
  const ended: string[] = [];
  void delay.wait().then(() => ended.push('first'));
  await vi.advanceTimersByTimeAsync(20);
  void delay.wait().then(() => ended.push('second'));
  await vi.advanceTimersByTimeAsync(4);
  expect(ended).toEqual([]);
  await vi.advanceTimersByTimeAsync(1);
  expect(ended).toEqual(['first', 'second']);
});

it('is over at once for a caller whose signal aborts, and goes on for the others', async () => {
  const delay = createSharedDelay(1_000);
  const stop = new AbortController();
  let others = false;
  void delay.wait().then(() => (others = true));
  const leaving = delay.wait(stop.signal);
  stop.abort();
  await leaving;
  await delay.wait(stop.signal);
  expect(others).toBe(false);
  await vi.advanceTimersByTimeAsync(1_000);
  expect(others).toBe(true);
});
