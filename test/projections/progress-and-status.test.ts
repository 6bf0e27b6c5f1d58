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

  it('is the last position, and never falls', () => {
    const progress = createProgress(5);
    expect(progress.position()).toBe(5);
    progress.applied([commandOf(eventOf(7), eventOf(8)), commandOf(eventOf(9, 'E', facts))]);
    expect(progress.position()).toBe(9);
    progress.applied([commandOf(eventOf(3))]);
    expect(progress.position()).toBe(9);
    progress.passed(8);
    expect(progress.position()).toBe(9);
    progress.passed(10);
    expect(progress.position()).toBe(10);
  });

  it('is waited for, in bounded time', async () => {
    const progress = createProgress(5);
    expect(await progress.untilPosition(5, 0)).toBe(true);
    expect(progress.awaited()).toBe(false);
    const first = progress.untilPosition(7, 100);
    expect(progress.awaited()).toBe(true);
    progress.passed(7);
    expect([await first, progress.awaited()]).toEqual([true, false]);
    const second = progress.untilPosition(9, 100);
    progress.applied([commandOf(eventOf(8)), commandOf(eventOf(9, 'E', facts))]);
    expect(await second).toBe(true);
    const late = progress.untilPosition(99, 100);
    vi.advanceTimersByTime(100);
    expect([await late, progress.awaited()]).toEqual([false, false]);
    const closing = progress.untilPosition(99, 100);
    progress.close();
    expect(await closing).toBe(false);
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
