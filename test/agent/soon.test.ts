/** What an agent reports beside its intervals: at once, as often as it may, and nothing is forgotten. */
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { createSoon } from '../../src/agent/control/soon.js';
import { createManualClock } from '../support/manual-clock.js';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

it('is done at once as often in a row as it may, and then once for all that was asked for too soon', () => {
  const clock = createManualClock();
  const pass = (ms: number): void => {
    clock.advance(ms);
    vi.advanceTimersByTime(ms);
  };
  let done = 0;
  const soon = createSoon({ perSecond: 1 / 5, burst: 2 }, clock, () => (done += 1) > 0);
  for (let asked = 0; asked < 100; asked += 1) soon.ask();
  expect(done).toBe(2);
  pass(4_999);
  expect(done).toBe(2);
  pass(1);
  expect(done).toBe(3);
  pass(60_000);
  expect(done).toBe(3);
  soon.close();
  soon.ask();
  expect(done).toBe(3);
});

it('waits until it can be done', () => {
  let can = false;
  let done = 0;
  const soon = createSoon({ perSecond: 1, burst: 1 }, createManualClock(), () => {
    if (can) done += 1;
    return can;
  });
  soon.ask();
  can = true;
  soon.retry();
  soon.retry();
  expect(done).toBe(1);
});
