/** What the writes behind do when one fails for good, when the backlog is full or poisoned, and when all of it ends. No store. */
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { RecordedCommand } from '../../src/kernel/event.js';
import type { Backlog } from '../../src/projections/engine/backlog.js';
import { createWriteBehind } from '../../src/projections/engine/write-behind.js';
import { tuning } from '../../src/projections/tuning.js';

const command = { stream: 's', events: [{}] } as unknown as RecordedCommand;
const commands = (count: number): readonly RecordedCommand[] => Array.from({ length: count }, () => command);
const at = (commit: number) => ({ commit, prepare: commit });

/** A write behind whose segments are written when the test says so, or fail. */
function open({ poisoned = false } = {}) {
  const stop = new AbortController();
  const seen: string[] = [];
  const running: { done: () => void; fail: (error: Error) => void }[] = [];
  let waiting: RecordedCommand[] = [];
  const backlog: Backlog = {
    add: async (more) => void waiting.push(...more),
    events: () => waiting.length,
    full: () => waiting.length >= tuning.segmentEvents,
    poisoned: () => poisoned && waiting.length > 0,
    take() {
      const segment = { commands: waiting, writes: new Map(), poisoned: [] };
      waiting = [];
      return segment;
    },
    write: () => new Promise((done, fail) => running.push({ done, fail })),
  };
  const behind = createWriteBehind({
    backlog,
    signal: stop.signal,
    persist: (_what, turn) => turn(),
    onWritten: (segment) => void seen.push(`${segment.commands.length} commands`),
    onPassed: ({ commit }) => void seen.push(`passed ${commit}`),
    onFailure: () => void seen.push('failure'),
  });
  return { behind, seen, running, stop };
}

/** Lets everything run that waits for nothing but its turn. */
const turns = async (): Promise<void> => {
  for (let turn = 0; turn < 20; turn += 1) await Promise.resolve();
};

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }));
afterEach(() => void vi.useRealTimers());

describe('a write that fails for good', () => {
  it('is told, and thrown by every later call', async () => {
    const { behind, seen, running } = open();
    await behind.add(commands(tuning.segmentEvents));
    behind.passed(at(5));
    const error = new Error('for good');
    running[0]?.fail(error);
    await turns();
    expect(seen).toEqual(['failure']);
    await expect(behind.add(commands(1))).rejects.toBe(error);
    await expect(behind.flush()).rejects.toBe(error);
    // Nothing is begun any more, not by the timer either.
    vi.advanceTimersByTime(10 * tuning.backlogMs);
    await turns();
    expect(running).toHaveLength(1);
    await behind.close();
  });

  it('fails the call that waits for it', async () => {
    const { behind, running } = open();
    await behind.add(commands(1));
    const flushed = expect(behind.flush()).rejects.toThrow('for good');
    await turns();
    running[0]?.fail(new Error('for good'));
    await flushed;
  });
});

describe('a backlog', () => {
  it('that is full waits for the running write, and then begins the next one', async () => {
    const { behind, seen, running } = open();
    await behind.add(commands(tuning.segmentEvents));
    let added = false;
    const more = behind.add(commands(tuning.segmentEvents)).then(() => (added = true));
    await turns();
    expect([added, running.length]).toEqual([false, 1]);
    running[0]?.done();
    await more;
    expect([seen, running.length]).toEqual([[`${tuning.segmentEvents} commands`], 2]);
  });

  it('that is nearly full does not wait, and does not write beside a running write', async () => {
    const { behind, running } = open();
    await behind.add(commands(tuning.segmentEvents));
    await behind.add(commands(tuning.segmentEvents - 1));
    vi.advanceTimersByTime(tuning.backlogMs);
    await turns();
    expect(running).toHaveLength(1);
  });

  it('with an entity that cannot be folded is written before more is added', async () => {
    const { behind, seen, running } = open({ poisoned: true });
    let added = false;
    const adding = behind.add(commands(1)).then(() => (added = true));
    await turns();
    expect([added, running.length]).toEqual([false, 1]);
    running[0]?.done();
    await adding;
    expect(seen).toEqual(['1 commands']);
  });

  it('is written after a while, and not when it is empty by then', async () => {
    const { behind, seen, running } = open();
    await behind.add(commands(2));
    vi.advanceTimersByTime(tuning.backlogMs - 1);
    expect(running).toHaveLength(0);
    vi.advanceTimersByTime(1);
    expect(running).toHaveLength(1);
    running[0]?.done();
    await turns();
    expect(seen).toEqual(['2 commands']);
    await behind.add([]);
    vi.advanceTimersByTime(tuning.backlogMs);
    await turns();
    expect(running).toHaveLength(1);
  });

  it('that holds no command but a point has the point passed alone', async () => {
    const { behind, seen, running } = open();
    await behind.add(commands(tuning.segmentEvents));
    behind.passed(at(9));
    const flushed = behind.flush();
    running[0]?.done();
    await turns();
    running[1]?.done();
    await flushed;
    expect(seen).toEqual([`${tuning.segmentEvents} commands`, 'passed 9']);
  });
});

describe('the end', () => {
  it('waits for the running write, tells nothing of it, and begins none', async () => {
    const { behind, seen, running, stop } = open();
    await behind.add(commands(tuning.segmentEvents));
    await behind.add(commands(1));
    stop.abort();
    let closed = false;
    const closing = behind.close().then(() => (closed = true));
    await turns();
    expect(closed).toBe(false);
    running[0]?.done();
    await closing;
    await behind.flush();
    await behind.add(commands(tuning.segmentEvents));
    vi.advanceTimersByTime(10 * tuning.backlogMs);
    await turns();
    expect([seen, running.length]).toEqual([[], 1]);
  });

  it('stops the timer of a small backlog', async () => {
    const { behind, running } = open();
    await behind.add(commands(1));
    await behind.close();
    vi.advanceTimersByTime(10 * tuning.backlogMs);
    await turns();
    expect(running).toHaveLength(0);
  });
});
