/** How near the fold is to the end of the log, by what its subscription tells. */
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { createLogConnection } from '../../src/projections/log-connection.js';
import { silentLogger } from '../../src/kernel/logger.js';
import { StarvedError } from '../../src/storage/event-store.js';

const graceMs = 100;
const warnings: object[] = [];
let ended = 0;

const connect = () =>
  createLogConnection({
    logger: { ...silentLogger, warn: (fields) => void warnings.push(fields) },
    graceMs,
    onGraceEnd: () => (ended += 1),
  });

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  warnings.length = 0;
  ended = 0;
});
afterEach(() => vi.useRealTimers());

describe('the distance from the end of the log', () => {
  it('is behind until the end is reached the first time', () => {
    const connection = connect();
    expect(connection.distance()).toBe('behind');
    connection.heard();
    expect(connection.distance()).toBe('behind');
    connection.caughtUp();
    expect(connection.distance()).toBe('live');
  });

  it('is just dropped for the grace period, then cut off, and the end of the period is told once', () => {
    const connection = connect();
    connection.caughtUp();
    connection.dropped(new Error('gone'));
    expect(connection.distance()).toBe('just_dropped');
    vi.advanceTimersByTime(graceMs - 1);
    expect([connection.distance(), ended]).toEqual(['just_dropped', 0]);
    vi.advanceTimersByTime(1);
    expect([connection.distance(), ended]).toEqual(['cut_off', 1]);
    connection.caughtUp();
    expect(connection.distance()).toBe('live');
    vi.advanceTimersByTime(10 * graceMs);
    expect(ended).toBe(1);
  });

  it('is live again within the grace period, which then ends without being told', () => {
    const connection = connect();
    connection.caughtUp();
    connection.dropped(new Error('gone'));
    connection.caughtUp();
    vi.advanceTimersByTime(10 * graceMs);
    expect([connection.distance(), ended]).toEqual(['live', 0]);
  });

  it('is behind, not cut off, after a grace period in which something arrived', () => {
    const connection = connect();
    connection.caughtUp();
    connection.dropped(new Error('gone'));
    connection.heard();
    expect(connection.distance()).toBe('just_dropped');
    vi.advanceTimersByTime(graceMs);
    expect(connection.distance()).toBe('behind');
  });

  it('stays cut off for one more grace period once something arrives, and is behind after it', () => {
    const connection = connect();
    connection.caughtUp();
    connection.dropped(new Error('gone'));
    vi.advanceTimersByTime(graceMs);
    connection.heard();
    vi.advanceTimersByTime(graceMs - 1);
    expect(connection.distance()).toBe('cut_off');
    // What arrives later does not prolong it.
    connection.heard();
    vi.advanceTimersByTime(1);
    expect([connection.distance(), ended]).toEqual(['behind', 2]);
  });

  it('is cut off again when what was heard was followed by another drop', () => {
    const connection = connect();
    connection.caughtUp();
    connection.dropped(new Error('gone'));
    connection.heard();
    connection.dropped(new Error('gone again'));
    vi.advanceTimersByTime(graceMs);
    expect(connection.distance()).toBe('cut_off');
  });

  it('is behind at once when the log had more than the subscription delivered', () => {
    const connection = connect();
    connection.caughtUp();
    connection.dropped(new StarvedError(7));
    expect(connection.distance()).toBe('behind');
    connection.caughtUp();
    connection.dropped(new Error('gone'));
    expect(connection.distance()).toBe('just_dropped');
  });

  it('is behind while the log is read again from its start, whatever was before', () => {
    const connection = connect();
    connection.caughtUp();
    connection.reset();
    expect(connection.distance()).toBe('behind');
    connection.caughtUp();
    connection.dropped(new Error('gone'));
    connection.reset();
    vi.advanceTimersByTime(10 * graceMs);
    expect([connection.distance(), ended]).toEqual(['behind', 0]);
    connection.caughtUp();
    connection.dropped(new Error('gone'));
    vi.advanceTimersByTime(graceMs);
    connection.reset();
    expect(connection.distance()).toBe('behind');
  });

  it('warns of a drop once, with its cause, not of the failed attempts that follow', () => {
    const connection = connect();
    connection.dropped(new Error('never live'));
    expect(warnings).toEqual([]);
    connection.caughtUp();
    connection.dropped(new Error('gone'));
    connection.dropped(new Error('gone again'));
    expect(warnings).toEqual([{ error: 'Error: gone' }]);
    vi.advanceTimersByTime(graceMs);
    connection.close();
  });

  it('tells nothing after it is closed', () => {
    const connection = connect();
    connection.caughtUp();
    connection.dropped(new Error('gone'));
    connection.close();
    vi.advanceTimersByTime(10 * graceMs);
    expect(ended).toBe(0);
  });
});
