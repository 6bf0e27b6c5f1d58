/** The parts of the command side each by itself: waiting callers, the append of a group, the budget and batches of facts. */
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { appendGroup } from '../../src/commands/append-group.js';
import { createFactBudget } from '../../src/commands/fact-budget.js';
import { createStreamBatch } from '../../src/commands/stream-batch.js';
import type { StreamBatchOptions } from '../../src/commands/stream-batch.js';
import { tuning } from '../../src/commands/tuning.js';
import { createWaitingCallers } from '../../src/commands/waiting-callers.js';
import type { Answer } from '../../src/commands/waiting-callers.js';
import type { FactOutcome } from '../../src/domain/agents/facts.js';
import { ServiceError } from '../../src/kernel/errors.js';
import type { ProposedEvent, RecordedEvent } from '../../src/kernel/event.js';
import { limits } from '../../src/kernel/limits.js';
import { silentLogger } from '../../src/kernel/logger.js';
import { eventBytes } from '../../src/storage/event-json.js';
import type { AppendOutcome, EventStore } from '../../src/storage/event-store.js';
import { createManualClock } from '../support/manual-clock.js';

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
let ids = 0;
/** An event of exactly so many bytes as JSON. */
function eventOf(type: string, bytes = 200): ProposedEvent {
  const event = (filler: string): ProposedEvent => ({
    id: `id-${(ids += 1)}`,
    type,
    data: { filler },
    metadata: {
      command: { id: 'c', index: 0, count: 1 },
      actor: { type: 'agent', id: 'n1', name: 'n1' },
      request_id: 'r',
      occurred_at: '2025-01-01T00:00:00.000Z',
      schema_version: 1,
    },
  });
  return event('x'.repeat(Math.max(0, bytes - eventBytes(event('')))));
}
/** What an append answers, one after the other; then that it is written. */
function storeOf(...outcomes: AppendOutcome[]) {
  const appends: { readonly expected: unknown; readonly types: readonly string[]; readonly ids: readonly string[] }[] =
    [];
  const append: EventStore['append'] = async (_stream, expected, events) => {
    appends.push({ expected, types: events.map(({ type }) => type), ids: events.map(({ id }) => id) });
    return outcomes.shift() ?? { kind: 'appended', revision: 0, position: 7 };
  };
  return { append, appends };
}
const refused = (what: 'stream' | 'append'): AppendOutcome => ({ kind: 'refused', what, cause: 'no' });
const unknown: AppendOutcome = { kind: 'unknown', cause: 'lost' };
const unavailable: AppendOutcome = { kind: 'unavailable', cause: 'away' };

describe('waiting callers', () => {
  beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }));
  afterEach(() => void vi.useRealTimers());
  const call = (command: string) => ({ command, context: {} as never, select: () => undefined });
  const textOf = (answer: Answer): string => (answer.kind === 'refused' ? answer.error.message : answer.kind);

  test('are told in time that nothing was written, unless their command may be on its way', async () => {
    const callers = createWaitingCallers<unknown, string>();
    const answers = ['a', 'b', 'c'].map((command) => callers.add(call(command)).then(textOf));
    expect([callers.count, callers.all().map(({ command }) => command)]).toEqual([3, ['a', 'b', 'c']]);
    callers.beginGroup(2);
    vi.advanceTimersByTime(tuning.commandAnswerMs - 1);
    expect(callers.count).toBe(3);
    vi.advanceTimersByTime(1);
    expect(await Promise.all(answers)).toEqual([
      expect.stringContaining('it may have been'),
      expect.stringContaining('it may have been'),
      expect.stringContaining('nothing was written'),
    ]);
    // Those in the group keep their place until it is settled.
    expect(callers.all().map(({ command }) => command)).toEqual(['a', 'b']);
    callers.endGroup();
    expect(callers.count).toBe(0);
  });

  test('leave with their group, and those behind it stay', async () => {
    const callers = createWaitingCallers<unknown, string>();
    const late = ['a', 'b', 'c'].map((command) => callers.add(call(command)));
    callers.beginGroup(2);
    callers.endGroup();
    callers.endGroup();
    expect(callers.all().map(({ command }) => command)).toEqual(['c']);
    callers.all()[0]?.answer({ kind: 'unchanged', position: 1, result: undefined });
    expect(await late[2]).toMatchObject({ kind: 'unchanged' });
    expect(vi.getTimerCount()).toBe(2);
  });

  test('are all refused when the log cannot be read, and the next ones wait as before', async () => {
    const callers = createWaitingCallers<unknown, string>();
    const answers = ['a', 'b'].map((command) => callers.add(call(command)).then(textOf));
    callers.beginGroup(1);
    callers.refuseAll(new ServiceError('unavailable', 'away'));
    expect([await Promise.all(answers), callers.count]).toEqual([['away', 'away'], 0]);
    const next = callers.add(call('c')).then(textOf);
    vi.advanceTimersByTime(tuning.commandAnswerMs);
    expect([await next, callers.count]).toEqual([expect.stringContaining('nothing was written'), 0]);
  });
});

describe('the append of a group', () => {
  const clock = createManualClock();
  const group = [eventOf('A'), eventOf('B')];
  /** @param log the events that stand behind the expected revision at each search */
  function append(
    outcomes: AppendOutcome[],
    log: (readonly string[] | 'unreadable')[] = [],
    options: { readonly expected?: number; readonly aborted?: boolean; readonly advanceMs?: number } = {},
  ) {
    const { append: appendTo, appends } = storeOf(...outcomes);
    const ranges: unknown[] = [];
    const warnings: object[] = [];
    const store = {
      append: async (...args: Parameters<typeof appendTo>) => {
        clock.advance(options.advanceMs ?? 0);
        return appendTo(...args);
      },
      async *read(_stream: string, range: object) {
        ranges.push(range);
        const found = log.shift() ?? [];
        if (found === 'unreadable') throw new Error('away');
        for (const [index, id] of found.entries()) yield { id, position: 100 + index } as RecordedEvent;
      },
    } as unknown as EventStore;
    const stop = new AbortController();
    if (options.aborted === true) stop.abort();
    const logger = { ...silentLogger, warn: (fields: object) => void warnings.push(fields) };
    const outcome = appendGroup(
      { eventStore: store, clock, logger, signal: stop.signal },
      'svc-fleet',
      options.expected ?? 4,
      group,
    );
    return { outcome, appends, ranges, warnings };
  }
  const own = group.map(({ id }) => id);

  test('is expected behind the revision, or to begin its stream', async () => {
    const behind = append([]);
    expect(await behind.outcome).toEqual({ kind: 'appended', position: 7 });
    expect([behind.appends[0]?.expected, behind.appends[0]?.ids, behind.ranges, behind.warnings]).toEqual([
      4,
      own,
      [],
      [],
    ]);
    const zero = append([], [], { expected: 0 });
    await zero.outcome;
    const first = append([], [], { expected: -1 });
    await first.outcome;
    expect([zero.appends[0]?.expected, first.appends[0]?.expected]).toEqual([0, 'no_stream']);
  });

  test('is a conflict, or unavailable, at once while nothing may have been written', async () => {
    const conflict = append([{ kind: 'conflict', actual: 9 }]);
    expect(await conflict.outcome).toEqual({ kind: 'conflict' });
    for (const outcome of [unavailable, refused('stream'), refused('append')]) {
      const away = append([outcome]);
      expect(await away.outcome).toEqual({ kind: 'unavailable' });
      expect([away.appends.length, away.ranges, away.warnings.length]).toEqual([1, [], 1]);
    }
  });

  test('whose position the store does not say is read from the log', async () => {
    const { outcome, ranges } = append([{ kind: 'appended', revision: 6, position: undefined }], [own]);
    expect(await outcome).toEqual({ kind: 'appended', position: 101 });
    expect(ranges).toEqual([{ direction: 'forward', from: 5, maxCount: 2 }]);
  });

  test('whose outcome is unknown is looked for, and is a conflict when other events stand there', async () => {
    expect(await append([unknown], [own]).outcome).toEqual({ kind: 'appended', position: 101 });
    expect(await append([unknown], [['other', own[1] ?? '']]).outcome).toEqual({ kind: 'conflict' });
  });

  test('is tried again unchanged when the log has nothing or cannot be read, and no later answer says that nothing was written', async () => {
    const { outcome, appends, warnings } = append(
      [unknown, unavailable, { kind: 'conflict', actual: 6 }],
      [[], 'unreadable', own],
    );
    expect(await outcome).toEqual({ kind: 'appended', position: 101 });
    expect(appends.map(({ ids: tried }) => tried)).toEqual([own, own, own]);
    expect(warnings).toHaveLength(3);
  });

  test('stays unknown after so much time, so many tries, or when the gateway closes', async () => {
    const slow = append([unknown, unknown], [], { advanceMs: tuning.outcomeWaitMs });
    expect([await slow.outcome, slow.appends.length]).toEqual([{ kind: 'unknown' }, 1]);
    const quicker = append([unknown, unknown], [], { advanceMs: tuning.outcomeWaitMs / 2 });
    expect([await quicker.outcome, quicker.appends.length]).toEqual([{ kind: 'unknown' }, 2]);
    const closing = append([unknown], [], { aborted: true });
    expect([await closing.outcome, closing.appends.length]).toEqual([{ kind: 'unknown' }, 1]);
    const found = append([unknown], [own], { aborted: true });
    expect(await found.outcome).toMatchObject({ kind: 'appended' });
  });
});

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
    pass(59);
    expect(made.held).toBe(1);
    pass((1024 * 60_000) / perMinute);
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

describe('a batch of facts', () => {
  const batchOf = (store: ReturnType<typeof storeOf>, options: Partial<StreamBatchOptions> = {}) => {
    const refusals: string[] = [];
    const warnings: object[] = [];
    const batch = createStreamBatch('svc-agents-00', {
      eventStore: store,
      logger: { ...silentLogger, warn: (fields) => void warnings.push(fields) },
      everyMs: 1,
      maxFacts: 1_000_000,
      maxBytes: 1_000_000_000,
      onRefused: ({ type }, cause) => void refusals.push(`${type}: ${cause}`),
      ...options,
    });
    const add = (type: string, bytes?: number): Promise<FactOutcome | string> =>
      batch.add(eventOf(type, bytes)).catch((error: unknown) => String(error));
    return { batch, add, refusals, warnings };
  };

  test('holds as many facts as an append may, in order', async () => {
    const store = storeOf();
    const { add } = batchOf(store);
    const count = limits.events.appendEvents + 1;
    const outcomes = await Promise.all(Array.from({ length: count }, (_, index) => add(`T${index}`)));
    expect(new Set(outcomes)).toEqual(new Set(['recorded']));
    expect(store.appends.map(({ types }) => types.length)).toEqual([limits.events.appendEvents, 1]);
    expect(store.appends.flatMap(({ types }) => types)).toEqual(
      Array.from({ length: count }, (_, index) => `T${index}`),
    );
  });

  test('holds as many bytes as an append may, to the byte', async () => {
    const store = storeOf();
    const { add } = batchOf(store);
    const half = limits.events.appendBytes / 2;
    const rest = half - 56 * 1024;
    await Promise.all([add('A', half), add('B', half), add('C', half), add('D', rest), add('E', 56 * 1024 + 1)]);
    expect(store.appends.map(({ types }) => types.join(''))).toEqual(['AB', 'CD', 'E']);
  });

  test('takes a fact of the largest size, and refuses a larger one', async () => {
    const store = storeOf();
    const { add, refusals } = batchOf(store);
    expect(await add('A', tuning.factBytes)).toBe('recorded');
    expect(await add('B', tuning.factBytes + 1)).toBe('refused');
    expect([store.appends.length, refusals.length]).toEqual([1, 1]);
  });

  test('is bounded by facts and by bytes, and takes new ones when it is written', async () => {
    const store = storeOf();
    const { add } = batchOf(store, { maxFacts: 3, maxBytes: 1000 });
    const full = [add('A', 500), add('B', 500), add('C', 300)];
    expect(await full[2]).toContain('too many facts');
    expect(await Promise.all(full.slice(0, 2))).toEqual(['recorded', 'recorded']);
    const many = await Promise.all(['A', 'B', 'C', 'D'].map((type) => add(type, 250)));
    expect(many.map((outcome) => outcome === 'recorded')).toEqual([true, true, true, false]);
  });

  test('is tried again with what is left of it, and a problem is told once', async () => {
    const store = storeOf(unavailable, unknown, { kind: 'conflict', actual: 3 });
    let later: Promise<unknown> | undefined;
    const { add, batch, warnings } = batchOf({
      ...store,
      append: async (...args) => {
        if (store.appends.length === 0) {
          later = add('C');
          batch.drop(({ type }) => type === 'A');
        }
        return store.append(...args);
      },
    });
    const outcomes = [add('A'), add('B')];
    expect(await Promise.all(outcomes)).toEqual(['superseded', 'recorded']);
    expect(await later).toBe('recorded');
    expect(store.appends.map(({ types }) => types.join(''))).toEqual(['AB', 'B', 'B', 'B', 'C']);
    expect(warnings).toHaveLength(1);
    await batch.close();
  });

  test('is refused for good at the third refusal: one by one when an append is, all that wait when the stream is', async () => {
    const one = storeOf(refused('append'), refused('append'), refused('append'), refused('append'));
    const byAppend = batchOf(one);
    expect(await Promise.all([byAppend.add('A'), byAppend.add('B')])).toEqual(['refused', 'recorded']);
    expect(one.appends.map(({ types }) => types.join(''))).toEqual(['AB', 'AB', 'AB', 'A', 'B']);
    expect(byAppend.refusals).toEqual(['A: no']);
    const all = storeOf(refused('stream'), refused('stream'), refused('stream'));
    const byStream = batchOf(all);
    const outcomes = [byStream.add('A'), byStream.add('B')];
    await vi.waitFor(() => expect(all.appends.length).toBeGreaterThan(1));
    const behind = byStream.add('C');
    expect(await Promise.all([...outcomes, behind])).toEqual(['refused', 'refused', 'refused']);
    expect(await byStream.add('D')).toBe('recorded');
    const alone = storeOf(refused('append'), refused('append'), refused('append'));
    expect(await batchOf(alone).add('A')).toBe('refused');
    expect(alone.appends).toHaveLength(3);
  });

  test('tries the rest again when one of them cannot be written now', async () => {
    const store = storeOf(refused('append'), refused('append'), refused('append'), unavailable);
    const { add, refusals } = batchOf(store);
    expect(await Promise.all([add('A'), add('B')])).toEqual(['recorded', 'recorded']);
    expect(store.appends.map(({ types }) => types.join(''))).toEqual(['AB', 'AB', 'AB', 'A', 'AB']);
    expect(refusals).toEqual([]);
  });

  test('is given up when the store fails or the service closes, and nothing is taken afterwards', async () => {
    const failing = storeOf();
    const broken = batchOf({ ...failing, append: () => Promise.reject(new Error('bug')) });
    expect(await Promise.all([broken.add('A'), broken.add('B')])).toEqual([
      expect.stringContaining('did not take'),
      expect.stringContaining('did not take'),
    ]);
    const store = storeOf(unavailable, unavailable);
    const closing = batchOf(store, { everyMs: 60_000 });
    const waiting = closing.add('A');
    await closing.batch.close();
    expect([await waiting, store.appends.length]).toEqual([expect.stringContaining('shut down'), 1]);
    expect(await closing.add('B')).toContain('too many facts');
  });
});
