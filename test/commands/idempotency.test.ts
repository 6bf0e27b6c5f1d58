/** Repeated commands under an idempotency key: `docs/contract/rest.md#consistency`. */
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { IdempotencyMark } from '../../src/kernel/event.js';
import { limits } from '../../src/kernel/limits.js';
import { createCommandFixture, refusalOf, type CommandFixture, type FleetGateway } from '../support/command-fixture.js';
import { createNode, nodeId, sealed } from '../support/fleet.js';
import { storesInMemory } from '../support/stores-in-memory.js';
import { answerLost, notWritten } from '../support/scripted-event-store.js';
import { tuning } from '../../src/commands/tuning.js';

let fixture: CommandFixture;
let gateway: FleetGateway;

beforeEach(async () => {
  fixture = await createCommandFixture(storesInMemory());
  gateway = await fixture.gateway();
});
afterEach(() => fixture.close());

const key = (key_hash: string, body_hash = 'body'): { readonly idempotency: IdempotencyMark } => ({
  idempotency: { key_hash, body_hash },
});
/** A repeated POST: the same body, but a new id each time, as the service generates them. */
let copies = 0;
const post = (name: string, over: FleetGateway = gateway, mark = key(name)) => {
  copies += 1;
  return over.run(createNode(`${name} ${copies}`, { name, psk: { fingerprint: 'f', verifier: sealed } }), mark);
};
const first = { kind: 'done', events: [{ type: 'NodeCreated' }, { type: 'NodePskIssued' }] };

test('a repeat with the same key and body answers with the first resource and writes nothing', async () => {
  const done = await post('a');
  expect(done).toMatchObject(first);
  const again = await post('a');
  const [event, last] = await fixture.log();
  expect(again).toEqual({
    kind: 'repeated',
    commandId: event?.metadata.command.id,
    resourceId: event?.data['node_id'],
    command: { stream: 'svc-fleet', events: await fixture.log() },
    position: last?.position,
  });
  expect((await fixture.log()).length).toBe(2);
});

test('the same key with another body is a conflict', async () => {
  await post('a');
  const refusal = await refusalOf(post('b', gateway, key('a', 'other body')));
  expect(refusal.code).toBe('conflict');
  expect(refusal.message).toContain('Idempotency-Key');
});

test('repeats and conflicts are also found within one group of commands', async () => {
  const [done, again, other] = await Promise.allSettled([
    post('a'),
    post('a'),
    post('b', gateway, key('a', 'other body')),
  ]);
  expect(done).toMatchObject({ value: first });
  const resourceId = (await fixture.log())[0]?.data['node_id'];
  expect(again).toMatchObject({ value: { kind: 'repeated', resourceId } });
  expect(other).toMatchObject({ reason: { code: 'conflict' } });
  expect(fixture.store.appends.length).toBe(1);
  expect((await fixture.log()).length).toBe(2);
});

test('a repeat on another instance is found, at the same time or later', async () => {
  const other = await fixture.other();
  const both = await Promise.all([post('a'), post('a', other)]);
  expect(both.map(({ kind }) => kind).sort()).toEqual(['done', 'repeated']);
  await post('b');
  expect(await post('b', other)).toMatchObject({ kind: 'repeated' });
  expect((await fixture.log()).length).toBe(4);
});

test('a repeat after a restart is found', async () => {
  await post('a');
  fixture = await fixture.reopened();
  gateway = await fixture.gateway();
  expect(await post('a')).toMatchObject({ kind: 'repeated' });
  expect((await refusalOf(post('b', gateway, key('a', 'other body')))).code).toBe('conflict');
});

test('a repeat is decided on the newest log, which another instance may have written', async () => {
  const other = await fixture.other();
  await post('a', other);
  // The stale fold has the name as taken.
  await post('b');
  await other.run({ type: 'DeleteNode', id: nodeId(`a ${copies - 1}`), ifMatch: undefined });
  expect(await post('a')).toMatchObject({ kind: 'repeated', resourceId: nodeId(`a ${copies - 2}`) });
});

test('a refused command does not use up its key', async () => {
  await post('a');
  expect((await refusalOf(post('a', gateway, key('other')))).code).toBe('conflict');
  expect(await post('b', gateway, key('other', 'other body'))).toMatchObject(first);
  // Nor does one whose append failed.
  fixture.store.script(async () => ({ kind: 'unavailable', cause: 'scripted' }));
  expect((await refusalOf(post('c'))).code).toBe('unavailable');
  expect(await post('c', gateway, key('c', 'other body'))).toMatchObject(first);
});

test('a repeat after an unknown outcome is safe whether it was written or not', async () => {
  for (const [name, step] of [
    ['lost', answerLost],
    ['never', notWritten],
  ] as const) {
    fixture.store.script(async (...call) => {
      fixture.clock.advance(tuning.outcomeWaitMs);
      fixture.store.failReads(1);
      return step(...call);
    });
    expect((await refusalOf(post(name))).message).toContain('may have been');
    expect(await post(name)).toMatchObject(step === answerLost ? { kind: 'repeated' } : first);
  }
  expect((await fixture.log()).length).toBe(4);
});

test('a key is forgotten after exactly 24 hours', async () => {
  await post('a');
  fixture.clock.advance(limits.rest.idempotencyWindowMs - 1);
  expect(await post('a')).toMatchObject({ kind: 'repeated' });
  fixture.clock.advance(1);
  expect(await post('b', gateway, key('a', 'other body'))).toMatchObject(first);
});
