/** The budget of facts: what one node may write, what is held back meanwhile, and its bounds. */
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { createFactBudget } from '../../src/commands/facts.js';
import { tuning } from '../../src/commands/tuning.js';
import type { FactOutcome } from '../../src/domain/agents/facts.js';
import { limits } from '../../src/kernel/limits.js';
import { createManualClock } from '../support/manual-clock.js';
import { eventOf } from '../support/append-outcomes.js';

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

describe('the budget of facts', () => {
  beforeEach(() => void vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] }));
  afterEach(() => void vi.useRealTimers());
  const { burst, perMinute } = limits.agent.factBytes;

  function budget() {
    const clock = createManualClock();
    const written: string[] = [];
    const made = createFactBudget({
      clock,
      write: async (nodeId, event) => {
        written.push(`${nodeId} ${event.type}`);
        return 'recorded';
      },
    });
    const record = (nodeId: string, type: string, bytes: number): Promise<FactOutcome | string> =>
      made.record(nodeId, eventOf(type, bytes)).catch((error: unknown) => String(error));
    /** Uses up all that the node has. */
    const spend = async (nodeId: string): Promise<void> => {
      for (let left = burst; left > 0; left -= 128 * 1024) void record(nodeId, 'S', Math.min(left, 128 * 1024));
      await turn();
      written.length = 0;
    };
    const pass = (ms: number): void => {
      clock.advance(ms);
      vi.advanceTimersByTime(tuning.heldFactsEveryMs);
    };
    return { made, record, spend, written, clock, pass };
  }

  test('writes at once what the node has, to the byte, and holds the rest back', async () => {
    const { made, record, spend, written, pass } = budget();
    await spend('n1');
    const held = record('n1', 'A', 1024);
    expect([made.held, written]).toEqual([1, []]);
    expect(await record('n2', 'A', 1024)).toBe('recorded');
    pass((1022 * 60_000) / perMinute);
    expect(made.held).toBe(1);
    pass((4 * 60_000) / perMinute);
    expect([await held, made.held, written]).toEqual(['recorded', 0, ['n2 A', 'n1 A']]);
    expect(vi.getTimerCount()).toBe(0);
  });

  test('holds the newest of each kind, in the order of the last report, and what comes behind them too', async () => {
    const { made, record, spend, written, pass } = budget();
    await spend('n1');
    const [first, second] = [record('n1', 'A', 1024), record('n1', 'B', 1024)];
    const third = record('n1', 'A', 2048);
    expect([await first, made.held]).toEqual(['coalesced', 2]);
    pass((1024 * 60_000) / perMinute + 1);
    expect([await second, written]).toEqual(['recorded', ['n1 B']]);
    // There is enough for this one, and not for the one that waits before it.
    const fourth = record('n1', 'C', 300);
    pass((1000 * 60_000) / perMinute);
    expect(written).toEqual(['n1 B']);
    pass((2048 * 60_000) / perMinute);
    expect([await third, await fourth, written]).toEqual(['recorded', 'recorded', ['n1 B', 'n1 A', 'n1 C']]);
  });

  test('holds no more than its bytes, all nodes together, and counts what has left no longer', async () => {
    const whole = { ...tuning };
    onTestFinished(() => void Object.assign(tuning, whole));
    Object.assign(tuning, { heldFactsBytes: 1024 * 1024 });
    const { made, record, spend } = budget();
    const big = 250 * 1024;
    const room = Math.floor(tuning.heldFactsBytes / big);
    const nodes = Array.from({ length: room + 1 }, (_, index) => `n${index}`);
    for (const node of nodes) await spend(node);
    const all = nodes.map((node) => record(node, 'A', big));
    expect(made.held).toBe(room);
    expect(await all[room]).toContain('too many facts');
    // One of its own kind takes the place of the one before.
    void record('n0', 'A', big);
    expect([await all[0], made.held]).toEqual(['coalesced', room]);
    made.drop('n1', () => true);
    expect([await all[1], made.held]).toEqual(['superseded', room - 1]);
    void record(nodes[room] ?? '', 'A', big);
    expect(made.held).toBe(room);
    made.close();
  });

  test('drops only what is obsolete', async () => {
    const { made, record, spend } = budget();
    await spend('n1');
    const [a, b] = [record('n1', 'A', 100), record('n1', 'B', 100)];
    made.drop('nobody', () => true);
    made.drop('n1', ({ type }) => type === 'A');
    expect([await a, made.held]).toEqual(['superseded', 1]);
    made.close();
    expect(await b).toContain('shut down');
  });

  test('lets a fact pass that is larger than any may be: it is refused where it would be written', async () => {
    const { record, spend, written } = budget();
    await spend('n1');
    expect(await record('n1', 'A', tuning.factBytes + 1)).toBe('recorded');
    expect(written).toEqual(['n1 A']);
    void record('n1', 'B', tuning.factBytes);
    expect(written).toEqual(['n1 A']);
  });

  test('writes at its close what it may by then, and holds nothing afterwards', async () => {
    const { made, record, spend, written, clock } = budget();
    await spend('n1');
    await spend('n2');
    const [one, two] = [record('n1', 'A', 1024), record('n2', 'A', 200 * 1024)];
    clock.advance((1024 * 60_000) / perMinute + 1);
    made.close();
    expect([await one, written]).toEqual(['recorded', ['n1 A']]);
    expect(await two).toContain('shut down');
    expect(made.held).toBe(0);
    expect(await record('n1', 'B', 2048)).toContain('too many facts');
    expect(vi.getTimerCount()).toBe(0);
  });
});
