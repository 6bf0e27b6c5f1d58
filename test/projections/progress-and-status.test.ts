/** How far the read models are, who waits for it, and who is told when their state changes. */
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { silentLogger } from '../../src/kernel/logger.js';
import { createProgress, createStatusBoard } from '../../src/projections/engine/progress.js';
import type { ParkedEntity } from '../../src/projections/port.js';
import { commandOf, eventOf } from '../support/recorded-events.js';

const facts = 'svc-agents-03';

describe('progress', () => {
  beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }));
  afterEach(() => void vi.useRealTimers());

  it('is the last position and the last revision of each stream, and never falls', () => {
    const progress = createProgress(5);
    expect([progress.position(), progress.revision('svc-fleet')]).toEqual([5, undefined]);
    progress.applied([commandOf(eventOf(7), eventOf(8)), commandOf(eventOf(9, 'E', facts))]);
    expect([progress.position(), progress.revision('svc-fleet'), progress.revision(facts)]).toEqual([9, 7, 8]);
    progress.applied([commandOf(eventOf(3))]);
    expect([progress.position(), progress.revision('svc-fleet')]).toEqual([9, 7]);
    progress.passed(8);
    expect(progress.position()).toBe(9);
    progress.passed(10);
    expect(progress.position()).toBe(10);
    // The first event of a stream has the revision 0.
    progress.applied([commandOf(eventOf(1, 'E', 'svc-service'))]);
    expect(progress.revision('svc-service')).toBe(0);
  });

  it('is waited for by position or revision, in bounded time', async () => {
    const progress = createProgress(5);
    expect(await progress.untilPosition(5, 0)).toBe(true);
    expect(progress.awaited()).toBe(false);
    const byPosition = progress.untilPosition(7, 100);
    const byRevision = progress.untilRevision('svc-fleet', 7, 100);
    const first = progress.untilRevision(facts, 0, 100);
    let firstSeen = false;
    void first.then(() => (firstSeen = true));
    expect(progress.awaited()).toBe(true);
    progress.passed(7);
    expect([await byPosition, progress.awaited(), firstSeen]).toEqual([true, false, false]);
    progress.applied([commandOf(eventOf(8)), commandOf(eventOf(9, 'E', facts))]);
    expect([await byRevision, await first]).toEqual([true, true]);
    const late = progress.untilPosition(99, 100);
    vi.advanceTimersByTime(100);
    expect([await late, progress.awaited()]).toEqual([false, false]);
    const closing = [progress.untilPosition(99, 100), progress.untilRevision('svc-fleet', 99, 100)];
    progress.close();
    expect(await Promise.all(closing)).toEqual([false, false]);
  });
});

describe('the status', () => {
  it('is told when it changes, not when only the position does', () => {
    let position = 1;
    const parked: ParkedEntity[] = [];
    const board = createStatusBoard(
      () => position,
      () => parked,
      silentLogger,
    );
    const told: unknown[] = [];
    const stop = board.onChange((status) => told.push(status));
    expect(board.current()).toEqual({
      caughtUp: false,
      unknownEvent: null,
      brokenLog: null,
      lastError: null,
      position: 1,
      parked: [],
    });
    board.set({ caughtUp: true });
    position = 2;
    board.set({ caughtUp: true });
    expect(told).toEqual([
      { caughtUp: true, unknownEvent: null, brokenLog: null, lastError: null, position: 1, parked: [] },
    ]);
    parked.push({ projection: 'nodes', id: 'n1', position: 2, error: 'x' });
    board.set({});
    board.set({ lastError: 'x' });
    stop();
    board.set({ lastError: null });
    expect(told).toHaveLength(3);
    expect(told[2]).toEqual({
      caughtUp: true,
      unknownEvent: null,
      brokenLog: null,
      lastError: 'x',
      position: 2,
      parked,
    });
  });

  it('is told to all listeners, also behind one that fails, which is logged', () => {
    const failures: object[] = [];
    const logger = { ...silentLogger, error: (fields: object) => void failures.push(fields) };
    const board = createStatusBoard(
      () => 1,
      () => [],
      logger,
    );
    const told: boolean[] = [];
    board.onChange(() => {
      throw new Error('of the listener');
    });
    board.onChange(({ caughtUp }) => void told.push(caughtUp));
    board.set({ caughtUp: true });
    expect([told, failures]).toEqual([[true], [{ error: expect.stringContaining('of the listener') }]]);
  });
});
