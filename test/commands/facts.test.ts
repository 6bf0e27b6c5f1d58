/** The fact recorder: what it writes about a fact, its turns, its bounds, and what becomes of facts that cannot be written. */
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import type { FactRecorder } from '../../src/commands/port.js';
import { createFactRecorder, retentions, setRetentions } from '../../src/commands/facts.js';
import { tuning } from '../../src/commands/tuning.js';
import type { AgentEvent, FactOutcome } from '../../src/domain/agents/facts.js';
import { agentShards, agentsStream, streams } from '../../src/kernel/event.js';
import type * as background from '../../src/kernel/background.js';
import { limits } from '../../src/kernel/limits.js';
import { silentLogger } from '../../src/kernel/logger.js';
import { eventBytes } from '../../src/storage/event-json.js';
import type { EventStore } from '../../src/storage/event-store.js';
import { actor, createCommandFixture, refusalOf, type CommandFixture } from '../support/command-fixture.js';
import { eventually } from '../support/eventually.js';
import { answerLost, notWritten, refused, unavailable } from '../support/scripted-event-store.js';
import { storesInMemory } from '../support/stores-in-memory.js';

// On timers that a test can hold.
vi.mock('../../src/kernel/background.js', async (original) => ({
  ...(await original<typeof background>()),
  sleep: (ms: number, signal?: AbortSignal) =>
    new Promise<void>((resolve) => {
      setTimeout(resolve, ms);
      if (signal?.aborted === true) resolve();
      signal?.addEventListener('abort', () => resolve());
    }),
}));

let fixture: CommandFixture;
let facts: FactRecorder;
let logged: { readonly fields: Readonly<Record<string, unknown>>; readonly message: string }[];

beforeEach(async () => {
  fixture = await createCommandFixture(storesInMemory());
  logged = [];
  const error = (fields: object, message: string): number => logged.push({ fields: { ...fields }, message });
  facts = createFactRecorder({ ...fixture.options, logger: { ...silentLogger, error } });
});
afterEach(async () => {
  vi.useRealTimers();
  fixture.store.always(undefined);
  await facts.close();
  await fixture.close();
});

const stream = agentsStream('n1');
const applied = (generation: number): AgentEvent => ({
  type: 'AgentConfigApplied',
  data: { node_id: 'n1', generation, checksum: 'c', duration_ms: 1 },
});
const rejected = (size: number): AgentEvent => ({
  type: 'AgentConfigRejected',
  data: {
    node_id: 'n1',
    generation: 1,
    checksum: 'c',
    errors: [{ resource_type: 'chain', resource_id: 'c', path: 'p', message: 'm'.repeat(size) }],
  },
});
const version = (reported: string): AgentEvent => ({
  type: 'AgentVersionConflict',
  data: { node_id: 'n1', reported },
});
/** Nodes of one stream, as many as the test needs: the budget of one would hold its facts back. */
const neighbours = (count: number): readonly string[] => {
  const nodes: string[] = [];
  for (let index = 0; nodes.length < count; index += 1) {
    if (agentsStream(`m${index}`) === stream) nodes.push(`m${index}`);
  }
  return nodes;
};
/** One node of each of so many streams. */
const strangers = (count: number): readonly string[] => {
  const byStream = new Map<string, string>();
  for (let index = 0; byStream.size < count; index += 1) byStream.set(agentsStream(`s${index}`), `s${index}`);
  return [...byStream.values()];
};
const record = (event: AgentEvent): Promise<FactOutcome> => facts.agent('n1', event, 'r');
const signin = (username: string | null = null): void =>
  facts.signin({ type: 'SignInRefused', data: { user_id: null, username, address: '192.0.2.1' } }, actor, 'r');
const generations = async (): Promise<readonly unknown[]> =>
  (await fixture.log(stream)).map(({ data }) => data['generation']);
const upTo = (count: number): readonly number[] => Array.from({ length: count }, (_, index) => index);
/** How often each stream was appended to. */
const appends = (): readonly string[] => fixture.store.appends.map((append) => append.stream);
const turns = async (): Promise<void> => {
  for (let turn = 0; turn < 3; turn += 1) await new Promise((resolve) => setImmediate(resolve));
};

describe('a fact', () => {
  test('is durable when its promise resolves, as a command of its own that says who, when and on which request', async () => {
    fixture.clock.advance(90_000);
    expect(await record(applied(7))).toBe('recorded');
    const [event, ...others] = await fixture.log(stream);
    expect(others).toEqual([]);
    expect(event).toMatchObject({
      type: 'AgentConfigApplied',
      data: { node_id: 'n1', generation: 7, checksum: 'c', duration_ms: 1 },
      metadata: {
        command: { id: expect.any(String), index: 0, count: 1 },
        actor: { type: 'agent', id: 'n1', name: 'n1' },
        request_id: 'r',
        occurred_at: '2025-01-01T00:01:30.000Z',
        schema_version: 1,
      },
    });
    expect(event?.id).not.toBe(event?.metadata.command.id);
    expect([...facts.stats().outcomes]).toEqual([['recorded', 1]]);
  });

  test('that arrives right after a batch starts the next one', async () => {
    for (let depth = 0; depth < 6; depth += 1) {
      await record(applied(depth));
      for (let turn = 0; turn < depth; turn += 1) await undefined;
    }
    expect(await generations()).toEqual(upTo(6));
  });

  test('is retried with the same id until it is durable', async () => {
    fixture.store.script(unavailable, notWritten, answerLost);
    await Promise.all([record(applied(1)), record(applied(2))]);
    const [first, ...later] = fixture.store.appends;
    expect(later.length).toBe(3);
    for (const { events } of later) expect(events).toEqual(first?.events);
  });

  test('that waits is written at once by a close, and none is taken afterwards', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const waiting = upTo(150).map((generation) => record(applied(generation)));
    await facts.close();
    await Promise.all(waiting);
    expect(await generations()).toEqual(upTo(150));
    expect((await refusalOf(record(applied(1)))).code).toBe('unavailable');
  });

  test('is kept for as long as the contract says, in each of the streams of facts', async () => {
    const set: unknown[] = [];
    await setRetentions({
      setRetention: async (...retention: unknown[]) => void set.push(retention),
    } as unknown as EventStore);
    const ages = Array.from({ length: agentShards }, (_, shard) => [
      `svc-agents-${shard < 10 ? '0' : ''}${shard}`,
      { maxAgeSeconds: limits.events.agentsMaxAgeSeconds },
    ]);
    expect(set).toEqual([
      ...ages,
      ['svc-signins', { maxAgeSeconds: limits.events.signinsMaxAgeSeconds }],
      ['svc-webhooks', { maxAgeSeconds: limits.events.webhooksMaxAgeSeconds }],
      ['svc-status', { maxAgeSeconds: limits.events.statusMaxAgeSeconds }],
      ['svc-keyring', { maxCount: 1 }],
    ]);
    expect(new Set(retentions.map((one) => one.stream))).toContain(stream);
  });
});

describe('a sign-in', () => {
  test('is recorded in the background', async () => {
    signin();
    signin('ada');
    await facts.close();
    expect(appends()).toEqual([streams.signins]);
    expect(
      (await fixture.log(streams.signins)).map(({ type, data, metadata }) => [type, data, metadata.actor]),
    ).toEqual([
      ['SignInRefused', { user_id: null, username: null, address: '192.0.2.1' }, actor],
      ['SignInRefused', { user_id: null, username: 'ada', address: '192.0.2.1' }, actor],
    ]);
    expect([...facts.stats().outcomes]).toEqual([['recorded', 2]]);
  });

  test('that cannot be recorded, as after the close, is logged and not thrown', async () => {
    await facts.close();
    signin();
    expect((await refusalOf(record(applied(1)))).code).toBe('unavailable');
    await turns();
    expect(await fixture.log(streams.signins)).toEqual([]);
    expect(logged).toEqual([
      {
        fields: { error: expect.stringContaining('too many facts are waiting'), type: 'SignInRefused' },
        message: expect.any(String),
      },
    ]);
  });
});

describe('a turn', () => {
  beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }));
  const pass = async (ms: number): Promise<readonly string[]> => {
    const before = appends().length;
    fixture.clock.advance(ms);
    vi.advanceTimersByTime(ms);
    await turns();
    return appends().slice(before);
  };

  test('begins with the first fact of its stream, and is longer for sign-ins', async () => {
    const [one, other] = strangers(2) as [string, string];
    void facts.agent(one, applied(1), 'r');
    signin();
    expect(await pass(tuning.agentFactsBatchMs - 1)).toEqual([]);
    void facts.agent(other, applied(1), 'r');
    expect(await pass(1)).toEqual([agentsStream(one)]);
    expect(await pass(tuning.agentFactsBatchMs - 1)).toEqual([agentsStream(other)]);
    expect(await pass(tuning.signinsBatchMs - 2 * tuning.agentFactsBatchMs)).toEqual([]);
    expect(await pass(1)).toEqual([streams.signins]);
  });
});

describe('what may wait', () => {
  // No delay ends by itself.
  beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }));
  const refusedOf = async (waiting: readonly Promise<unknown>[]): Promise<number> => {
    fixture.store.always(unavailable);
    let refusals = 0;
    const settled = waiting.map((one) => one.catch(() => (refusals += 1)));
    await turns();
    const atOnce = refusals;
    await facts.close();
    await Promise.all(settled);
    // One last try for all facts, not one per batch.
    expect(fixture.store.appends.length).toBe(1);
    return atOnce;
  };

  test('is bounded by the number of facts of a stream', async () => {
    const bound = tuning.agentFactsQueue / agentShards;
    const nodes = neighbours(bound / 100);
    expect(
      await refusedOf(
        upTo(bound + 2).map((index) => facts.agent(nodes[index % nodes.length] ?? '', applied(index), 'r')),
      ),
    ).toBe(2);
  });

  test('is bounded by the bytes of a stream', async () => {
    const large = rejected(200 * 1024);
    const bytes = 200 * 1024 + 500;
    const fit = Math.floor(tuning.agentFactsQueueBytes / agentShards / bytes);
    expect(await refusedOf(neighbours(fit + 1).map((node) => facts.agent(node, large, 'r')))).toBe(1);
  });

  test('is bounded by the number of sign-ins and by their bytes', async () => {
    fixture.store.always(unavailable);
    for (let index = 0; index < tuning.signinsQueue + 2; index += 1) signin();
    await turns();
    expect(logged).toHaveLength(2);
    await facts.close();
    facts = createFactRecorder(fixture.options);
    const few = createFactRecorder({
      ...fixture.options,
      logger: { ...silentLogger, error: (fields, message) => logged.push({ fields: { ...fields }, message }) },
    });
    logged.length = 0;
    const username = 'x'.repeat(200 * 1024);
    const fit = Math.floor(tuning.signinsQueueBytes / (200 * 1024 + 500));
    for (let index = 0; index <= fit; index += 1) {
      few.signin({ type: 'SignInRefused', data: { user_id: null, username, address: '192.0.2.1' } }, actor, 'r');
    }
    await turns();
    expect(logged).toHaveLength(1);
    await few.close();
  });
});

describe('what one node may write', () => {
  const { perMinute, burst } = limits.agent.factBytes;
  const bytesIn = async (): Promise<number> =>
    (await fixture.log(stream)).reduce((sum, event) => sum + eventBytes(event), 0);
  /** Uses up the node's budget; the facts are recorded. */
  const spend = async (): Promise<void> => {
    await record(rejected(16 * 1024));
    const size = await bytesIn();
    const more = upTo(Math.floor(burst / size) - 1).map(() => record(rejected(16 * 1024)));
    expect(new Set(await Promise.all(more))).toEqual(new Set(['recorded']));
  };
  const settledOf = (recording: Promise<FactOutcome>): { outcome: FactOutcome | undefined } => {
    const settled: { outcome: FactOutcome | undefined } = { outcome: undefined };
    recording.then((outcome) => (settled.outcome = outcome)).catch(() => undefined);
    return settled;
  };

  test('is bounded: facts over the budget wait, the newest of each kind in the order of their last report', async () => {
    await spend();
    const held = [rejected(16 * 1024), version('1'), rejected(9_000), version('2'), rejected(16 * 1024)].map((event) =>
      settledOf(record(event)),
    );
    await turns();
    expect(held.map(({ outcome }) => outcome)).toEqual(['coalesced', 'coalesced', 'coalesced', undefined, undefined]);
    expect(facts.stats().held).toBe(2);
    // Another node is not held back.
    expect(await facts.agent(neighbours(1)[0] ?? '', applied(1), 'r')).toBe('recorded');
    const before = (await fixture.log(stream)).length;
    fixture.clock.advance(60_000);
    await eventually(() => held.slice(3).map(({ outcome }) => outcome)).toEqual(['recorded', 'recorded']);
    const written = (await fixture.log(stream)).slice(before);
    expect(written.map(({ type }) => type)).toEqual(['AgentVersionConflict', 'AgentConfigRejected']);
    expect(written[0]?.data).toMatchObject({ reported: '2' });
    expect(await bytesIn()).toBeLessThanOrEqual(burst + perMinute);
    expect(facts.stats().outcomes.get('coalesced')).toBe(3);
  });

  test('is dropped with its session while it is held back or waits for the log, and nothing of another node is', async () => {
    await spend();
    const held = record(rejected(16 * 1024));
    fixture.store.always(unavailable);
    const [node, another] = neighbours(2) as [string, string];
    const queued = facts.agent(node, applied(1), 'old session');
    const kept = facts.agent(node, applied(2), 'new session');
    const others = facts.agent(another, applied(3), 'old session');
    facts.drop('n1', ({ request_id }) => request_id === 'another session');
    expect(facts.stats().held).toBe(1);
    facts.drop('n1', ({ request_id }) => request_id === 'r');
    facts.drop(node, ({ request_id }) => request_id === 'old session');
    expect([await held, await queued]).toEqual(['superseded', 'superseded']);
    expect(facts.stats().held).toBe(0);
    fixture.store.always(undefined);
    expect([await kept, await others]).toEqual(['recorded', 'recorded']);
    expect((await generations()).slice(-2)).toEqual([2, 3]);
    // A node of a stream without facts has nothing to drop.
    facts.drop(strangers(2).find((stranger) => agentsStream(stranger) !== stream) ?? '', () => true);
  });
});

describe('a fact that the log refuses for good', () => {
  test('blocks nothing: those that report it go on, the log tells of it once, and later facts are written', async () => {
    fixture.store.always(refused('stream'));
    const some = neighbours(30);
    const outcomes = upTo(300).map((index) => facts.agent(some[index % 30] ?? '', applied(index), `r${index}`));
    expect(new Set(await Promise.all(outcomes))).toEqual(new Set(['refused']));
    expect(facts.stats().outcomes.get('refused')).toBe(300);
    const [line, ...more] = logged;
    expect(more).toEqual([]);
    expect(line?.fields).toEqual({
      reason: 'fact_refused',
      stream,
      type: 'AgentConfigApplied',
      request_id: 'r0',
      cause: 'scripted: refused',
    });
    fixture.store.always(undefined);
    expect(await record(applied(7))).toBe('recorded');
    // The close tells at the latest how many more there were.
    await facts.close();
    expect(JSON.stringify(logged.slice(1))).toContain('299');
  });
});
