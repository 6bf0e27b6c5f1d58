/** The fact recorder: batches, order, retries and bounds. */
import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { FactRecorder } from '../../src/commands/port.js';
import { createFactRecorder, setFactRetention } from '../../src/commands/facts.js';
import type { AgentEvent, FactOutcome } from '../../src/domain/agents/facts.js';
import { agentShards, agentsStream, streams } from '../../src/kernel/event.js';
import { limits } from '../../src/kernel/limits.js';
import { silentLogger } from '../../src/kernel/logger.js';
import { eventBytes } from '../../src/storage/event-json.js';
import type { CommandFixture } from '../support/command-fixture.js';
import { actor, createCommandFixture, refusalOf } from '../support/command-fixture.js';
import { eventually } from '../support/eventually.js';
import { append, planned } from '../support/read-side.js';
import { answerLost, notWritten, refused, unavailable } from '../support/scripted-event-store.js';
import { tuning } from '../../src/commands/tuning.js';

let fixture: CommandFixture;
let facts: FactRecorder;
let logged: string[];

beforeEach(async () => {
  fixture = await createCommandFixture();
  logged = [];
  const error = (fields: object, message: string): number => logged.push(`${message} ${JSON.stringify(fields)}`);
  facts = createFactRecorder({ ...fixture.options, logger: { ...silentLogger, error } });
});
afterEach(async () => {
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
/** Nodes of one stream, as many as the test needs: the budget of one would hold its facts back. */
const neighbours = (count: number): readonly string[] => {
  const nodes: string[] = [];
  for (let index = 0; nodes.length < count; index += 1) {
    if (agentsStream(`m${index}`) === stream) nodes.push(`m${index}`);
  }
  return nodes;
};
const record = (event: AgentEvent): Promise<FactOutcome> => facts.agent('n1', event, 'r');
const generations = async (): Promise<readonly unknown[]> =>
  (await fixture.log(stream)).map(({ data }) => data['generation']);
const upTo = (count: number): readonly number[] => Array.from({ length: count }, (_, index) => index);

test('facts of one stream that arrive together are appended together, in order', async () => {
  await Promise.all(upTo(250).map((generation) => record(applied(generation))));
  expect(fixture.store.appends.map(({ events }) => events.length)).toEqual([100, 100, 50]);
  expect(await generations()).toEqual(upTo(250));
});

test('a fact is durable when its promise resolves', async () => {
  await record(applied(7));
  expect(await generations()).toEqual([7]);
  const [event] = await fixture.log(stream);
  expect(event?.metadata).toMatchObject({
    actor: { type: 'agent', id: 'n1' },
    command: { index: 0, count: 1 },
    request_id: 'r',
  });
});

test('large facts are appended in groups below 512 KiB', async () => {
  await Promise.all(neighbours(10).map((node) => facts.agent(node, rejected(100 * 1024), 'r')));
  expect(fixture.store.appends.map(({ events }) => events.length)).toEqual([5, 5]);
  for (const { events } of fixture.store.appends) {
    expect(events.reduce((sum, event) => sum + eventBytes(event), 0)).toBeLessThanOrEqual(limits.events.appendBytes);
  }
});

test('a fact that is too large for the log is refused alone and blocks no other', async () => {
  const small = record(applied(1));
  expect(await record(rejected(tuning.factBytes))).toBe('refused');
  expect(await small).toBe('recorded');
  await record(applied(2));
  expect(await generations()).toEqual([1, 2]);
});

test('facts are retried with the same ids until they are durable', async () => {
  fixture.store.script(unavailable, notWritten, answerLost);
  await Promise.all([record(applied(1)), record(applied(2))]);
  const [first, ...later] = fixture.store.appends;
  expect(later.length).toBe(3);
  for (const { events } of later) expect(events).toEqual(first?.events);
  expect(await generations()).toEqual([1, 2]);
});

test('a store that throws fails the waiting facts, and later ones are written', async () => {
  fixture.store.script(async () => {
    throw new Error('broken');
  });
  expect((await refusalOf(record(applied(1)))).code).toBe('unavailable');
  await record(applied(2));
  expect(await generations()).toEqual([2]);
});

test('a fact that arrives right after a batch starts the next one', async () => {
  for (let depth = 0; depth < 6; depth += 1) {
    await record(applied(depth));
    for (let turn = 0; turn < depth; turn += 1) await undefined;
  }
  expect(await generations()).toEqual(upTo(6));
});

test('the queue of a stream is bounded: a fact that does not fit is refused at once', async () => {
  fixture.store.always(unavailable);
  const bound = tuning.agentFactsQueue / agentShards;
  const nodes = neighbours(bound / 100);
  const waiting = upTo(bound).map((index) =>
    facts.agent(nodes[index % nodes.length] ?? '', applied(index), 'r').catch((error: unknown) => error),
  );
  expect((await refusalOf(record(applied(bound)))).code).toBe('unavailable');
  await facts.close();
  for (const result of await Promise.all(waiting)) expect(result).toMatchObject({ code: 'unavailable' });
  // One last try for all facts, not one per batch.
  expect(fixture.store.appends.length).toBeLessThanOrEqual(2);
});

test('close writes the waiting facts at once and refuses new ones', async () => {
  const waiting = upTo(150).map((generation) => record(applied(generation)));
  await facts.close();
  await Promise.all(waiting);
  expect(await generations()).toEqual(upTo(150));
  expect((await refusalOf(record(applied(1)))).code).toBe('unavailable');
});

test('a sign-in is recorded in the background, and a failure to record it is not thrown', async () => {
  const signin = () =>
    facts.signin({ type: 'SignInRefused', data: { user_id: null, username: null, address: '192.0.2.1' } }, actor, 'r');
  signin();
  signin();
  await facts.close();
  expect((await fixture.log(streams.signins)).map(({ type }) => type)).toEqual(['SignInRefused', 'SignInRefused']);
  expect(fixture.store.appends.length).toBe(1);
  signin();
  await delay(0);
  expect((await fixture.log(streams.signins)).length).toBe(2);
});

test('facts expire after the retention of the contract', async () => {
  await setFactRetention(fixture.store);
  await record(applied(1));
  fixture.clock.advance(limits.events.agentsMaxAgeSeconds * 1000 - 1);
  expect(await generations()).toEqual([1]);
  fixture.clock.advance(2000);
  // The log expires nothing by the clock alone: a newer event says that the time has passed.
  const data = { user_id: null, username: null, address: '192.0.2.1' };
  await append(fixture.store, planned(streams.signins, [{ type: 'SignInRefused', data }]));
  expect(await generations()).toEqual([]);
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
  const version = (reported: string): AgentEvent => ({
    type: 'AgentVersionConflict',
    data: { node_id: 'n1', reported },
  });

  test('facts over the budget wait, the newest of each kind in the order of their last report', async () => {
    await spend();
    const held = [rejected(16 * 1024), version('1'), rejected(9_000), version('2'), rejected(16 * 1024)].map((event) =>
      settledOf(record(event)),
    );
    await eventually(() => held.map(({ outcome }) => outcome)).toEqual([
      'coalesced',
      'coalesced',
      'coalesced',
      undefined,
      undefined,
    ]);
    expect(facts.stats().held).toBe(2);
    const before = (await fixture.log(stream)).length;
    fixture.clock.advance(60_000);
    await eventually(() => held.slice(3).map(({ outcome }) => outcome)).toEqual(['recorded', 'recorded']);
    const written = (await fixture.log(stream)).slice(before);
    expect(written.map(({ type }) => type)).toEqual(['AgentVersionConflict', 'AgentConfigRejected']);
    expect(written[0]?.data).toMatchObject({ reported: '2' });
    expect(await bytesIn()).toBeLessThanOrEqual(burst + perMinute);
    expect(facts.stats().outcomes.get('coalesced')).toBe(3);
  });

  test('another node is not held back', async () => {
    await spend();
    const held = settledOf(record(rejected(16 * 1024)));
    expect(await facts.agent(neighbours(1)[0] ?? '', applied(1), 'r')).toBe('recorded');
    expect(held.outcome).toBeUndefined();
  });

  test('at most the burst and 64 KiB a minute are written, however long it goes on', async () => {
    await spend();
    const last: { outcome: FactOutcome | undefined }[] = [];
    for (let minute = 1; minute <= 5; minute += 1) {
      for (let index = 0; index < 50; index += 1) last.push(settledOf(record(rejected(16 * 1024 - index))));
      fixture.clock.advance(60_000);
      await eventually(() => last.at(-1)?.outcome).toBe('recorded');
      expect(await bytesIn()).toBeLessThanOrEqual(burst + minute * perMinute);
    }
  });

  test('a shutdown writes what the budget allows by then, and gives up the rest', async () => {
    await spend();
    const first = record(version('1'));
    const second = refusalOf(record(rejected(16 * 1024)));
    fixture.clock.advance(1_000);
    await facts.close();
    expect(await first).toBe('recorded');
    expect((await second).code).toBe('unavailable');
    expect((await fixture.log(stream)).at(-1)?.type).toBe('AgentVersionConflict');
  });

  test('a fact that is held back is dropped with its session, and so is one that waits for the log', async () => {
    await spend();
    const held = record(rejected(16 * 1024));
    fixture.store.always(unavailable);
    const node = neighbours(1)[0] ?? '';
    const queued = facts.agent(node, applied(1), 'old session');
    const kept = facts.agent(node, applied(2), 'new session');
    facts.drop('n1', ({ request_id }) => request_id === 'another session');
    expect(facts.stats().held).toBe(1);
    facts.drop('n1', ({ request_id }) => request_id === 'r');
    facts.drop(node, ({ request_id }) => request_id === 'old session');
    expect([await held, await queued]).toEqual(['superseded', 'superseded']);
    expect(facts.stats().held).toBe(0);
    fixture.store.always(undefined);
    expect(await kept).toBe('recorded');
    expect((await fixture.log(stream)).at(-1)?.data).toMatchObject({ generation: 2 });
  });
});

describe('a fact that the log refuses for good', () => {
  test('blocks nothing: those that report it go on, and later facts are written once the log takes them', async () => {
    fixture.store.always(refused('stream'));
    const bound = tuning.agentFactsQueue / agentShards;
    const some = neighbours(30);
    // More than the queue of the stream holds, and then one more.
    for (let round = 0; round < 3; round += 1) {
      const outcomes = upTo(bound / 2).map((index) => facts.agent(some[index % 30] ?? '', applied(index), 'r'));
      expect(new Set(await Promise.all(outcomes))).toEqual(new Set(['refused']));
    }
    expect(facts.stats().outcomes.get('refused')).toBe((bound / 2) * 3);
    fixture.store.always(undefined);
    expect(await record(applied(7))).toBe('recorded');
    const lines = logged.filter((line) => line.includes('refuses a fact for good'));
    expect(lines.length).toBeGreaterThan(0);
    expect(lines.length).toBeLessThan(5);
    expect(lines[0]).toContain(`"stream":"${stream}"`);
  });

  test('is refused alone when it is the append that is refused', async () => {
    fixture.store.always(async (write, { events }) =>
      events.some(({ data }) => data['generation'] === 2)
        ? { kind: 'refused', what: 'append', cause: 'scripted: too large' }
        : write(),
    );
    expect(await Promise.all(upTo(5).map((generation) => record(applied(generation))))).toEqual([
      'recorded',
      'recorded',
      'refused',
      'recorded',
      'recorded',
    ]);
    expect(await generations()).toEqual([0, 1, 3, 4]);
  });

  test('is written when the refusal does not last', async () => {
    fixture.store.script(refused('stream'), refused('stream'));
    expect(await record(applied(1))).toBe('recorded');
  });
});
