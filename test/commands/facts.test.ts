/** The fact recorder: batches, order, retries and bounds. */
import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { FactRecorder } from '../../src/commands/port.js';
import { createFactRecorder, setFactRetention } from '../../src/commands/facts.js';
import type { AgentEvent } from '../../src/domain/agents/facts.js';
import { agentShards, agentsStream, streams, eventBytesMax } from '../../src/kernel/event.js';
import { limits } from '../../src/kernel/limits.js';
import { eventBytes } from '../../src/storage/event-json.js';
import type { CommandFixture } from '../support/command-fixture.js';
import { actor, createCommandFixture, refusalOf } from '../support/command-fixture.js';
import { answerLost, notWritten, unavailable } from '../support/scripted-event-store.js';
import { tuning } from '../../src/commands/tuning.js';

let fixture: CommandFixture;
let facts: FactRecorder;

beforeEach(async () => {
  fixture = await createCommandFixture();
  facts = createFactRecorder(fixture.options);
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
const record = (event: AgentEvent): Promise<void> => facts.agent('n1', event, 'r');
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
  await Promise.all(upTo(10).map(() => record(rejected(100 * 1024))));
  expect(fixture.store.appends.map(({ events }) => events.length)).toEqual([5, 5]);
  for (const { events } of fixture.store.appends) {
    expect(events.reduce((sum, event) => sum + eventBytes(event), 0)).toBeLessThanOrEqual(limits.events.appendBytes);
  }
});

test('a fact that is too large for the log is refused alone and blocks no other', async () => {
  const small = record(applied(1));
  const large = refusalOf(record(rejected(eventBytesMax)));
  expect((await large).code).toBe('payload_too_large');
  await small;
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
  const waiting = upTo(bound).map((generation) => record(applied(generation)).catch((error: unknown) => error));
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
  expect(await generations()).toEqual([]);
});
