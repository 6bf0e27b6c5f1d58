/** When apply reports are worked on, beside a fan-out. */
import { afterEach, describe, expect, it, vi } from 'vitest';
import { createReportTurns, reportTurnMs, sliceReports } from '../../src/delivery/report-turns.js';
import { turns } from '../support/delivery-fixture.js';

/** Reports that have passed, by number. */
function reports(count: number, take: () => Promise<void> | undefined): readonly number[] {
  const passed: number[] = [];
  for (let number = 0; number < count; number += 1) void take()?.then(() => passed.push(number));
  return passed;
}

afterEach(() => {
  vi.useRealTimers();
});

describe('an apply report', () => {
  it('is worked on at once while nothing is fanned out', () => {
    expect(createReportTurns(() => false).turn()).toBeUndefined();
  });

  it('waits for the end of a fan-out, then passes in its order, a few in each turn of the event loop', async () => {
    let busy = true;
    const reportTurns = createReportTurns(() => busy);
    const count = 3 * sliceReports;
    const passed = reports(count, () => reportTurns.turn());
    await turns(20);
    expect(passed).toEqual([]);
    busy = false;
    reportTurns.wake();
    const sizes: number[] = [];
    while (passed.length < count) {
      const before = passed.length;
      await turns(1);
      sizes.push(passed.length - before);
    }
    expect(Math.max(...sizes)).toBe(sliceReports);
    expect(passed).toEqual(Array.from({ length: count }, (_, number) => number));
    expect(reportTurns.turn()).toBeUndefined();
    reportTurns.close();
  });

  it('is held up for a bounded time by a fan-out that does not end, and not by a shutdown', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const reportTurns = createReportTurns(() => true);
    const passed = reports(1, () => reportTurns.turn());
    vi.advanceTimersByTime(reportTurnMs - 1);
    await turns(3);
    expect(passed).toEqual([]);
    vi.advanceTimersByTime(1);
    await turns(3);
    expect(passed).toEqual([0]);
    const later = reports(1, () => reportTurns.turn());
    await turns(3);
    expect(later).toEqual([]);
    reportTurns.close();
    await turns(3);
    expect(later).toEqual([0]);
    expect(reportTurns.turn()).toBeUndefined();
  });

  it('keeps its place behind those that are still passing', async () => {
    let busy = true;
    const reportTurns = createReportTurns(() => busy);
    const passed: string[] = [];
    void reportTurns.turn()?.then(() => passed.push('first'));
    busy = false;
    reportTurns.wake();
    void reportTurns.turn()?.then(() => passed.push('second'));
    await turns(5);
    expect(passed).toEqual(['first', 'second']);
    reportTurns.close();
  });
});
