/** Appends with an unknown outcome: found by their event ids, retried, or answered as possibly written. */
import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { AppendOutcome } from '../../src/storage/event-store.js';
import {
  bytesOf,
  createCommandFixture,
  refusalOf,
  type CommandFixture,
  type FleetGateway,
} from '../support/command-fixture.js';
import { createNode } from '../support/fleet.js';
import { storesInMemory } from '../support/stores-in-memory.js';
import { after, answerLost, notWritten, unavailable, type AppendStep } from '../support/scripted-event-store.js';
import { tuning } from '../../src/commands/tuning.js';

let fixture: CommandFixture;
let gateway: FleetGateway;

beforeEach(async () => {
  fixture = await createCommandFixture(storesInMemory());
  gateway = await fixture.gateway();
  await gateway.run(createNode('before'));
});
afterEach(async () => {
  // After every test the gateway works again, and its fold is that of the log.
  fixture.store.always(undefined);
  await gateway.run(createNode('afterwards'));
  expect(bytesOf(gateway.fleet)).toBe(bytesOf(await fixture.fold()));
  await fixture.close();
});

/** Not written, and the caller's whole waiting time has passed. */
const silence: AppendStep = async (...step) => {
  fixture.clock.advance(tuning.outcomeWaitMs);
  return notWritten(...step);
};
const namesInLog = async (): Promise<readonly string[]> =>
  (await fixture.log()).map((event) => String(event.data['name'] ?? event.type));

test('an append whose answer is lost is found by its event ids and not repeated', async () => {
  fixture.store.script(answerLost);
  const [a, b] = await Promise.all([gateway.run(createNode('a')), gateway.run(createNode('b'))]);
  expect(fixture.store.appends.length).toBe(2);
  const log = await fixture.log();
  expect(a).toMatchObject({ kind: 'done', events: [{ id: log[1]?.id, revision: 1 }] });
  expect(b).toMatchObject({ kind: 'done', events: [{ id: log[2]?.id, revision: 2 }], position: log[2]?.position });
  expect(await namesInLog()).toEqual(['before', 'a', 'b']);
});

test('an append that is written late, before the retry, is written once', async () => {
  let late: Promise<AppendOutcome> | undefined;
  fixture.store.script(async (write) => {
    late = delay(2).then(write);
    return { kind: 'unknown', cause: 'late' };
  });
  expect(await gateway.run(createNode('a'))).toMatchObject({ kind: 'done' });
  await late;
  expect(await namesInLog()).toEqual(['before', 'a']);
});

test('an append that was not written is decided again when another instance writes first', async () => {
  const other = await fixture.other();
  fixture.store.script(async (...step) => {
    await other.run(createNode('there', { name: 'taken' }));
    return notWritten(...step);
  });
  const [first, second] = await Promise.allSettled([
    gateway.run(createNode('here', { name: 'taken' })),
    gateway.run(createNode('second')),
  ]);
  expect(first).toMatchObject({ status: 'rejected', reason: { code: 'conflict' } });
  expect(second).toMatchObject({ status: 'fulfilled' });
  expect(await namesInLog()).toEqual(['before', 'taken', 'second']);
});

test('an append whose answer is lost is found before the events of another instance', async () => {
  const other = await fixture.other();
  fixture.store.script(async (...step) => {
    const outcome = await answerLost(...step);
    await other.run(createNode('there'));
    return outcome;
  });
  expect(await gateway.run(createNode('here'))).toMatchObject({ kind: 'done', events: [{ revision: 1 }] });
  expect(await namesInLog()).toEqual(['before', 'here', 'there']);
  expect((await refusalOf(gateway.run(createNode('again', { name: 'there' })))).code).toBe('conflict');
});

test('the caller is told in bounded time that a change may have been written', async () => {
  fixture.store.always(silence);
  const refusal = await refusalOf(gateway.run(createNode('a')));
  expect(refusal.code).toBe('unavailable');
  expect(refusal.message).toContain('may have been');
  expect(fixture.store.appends.length).toBe(2);
  expect(await namesInLog()).toEqual(['before']);
});

test('an append that is written after the gateway gave up is read like that of another instance', async () => {
  let write: (() => Promise<AppendOutcome>) | undefined;
  fixture.store.script(async (late, call) => {
    write = late;
    return silence(late, call);
  });
  expect((await refusalOf(gateway.run(createNode('a')))).message).toContain('may have been');
  await write?.();
  expect((await refusalOf(gateway.run(createNode('a2', { name: 'a' })))).code).toBe('conflict');
  expect(await namesInLog()).toEqual(['before', 'a']);
});

test('after an unknown outcome, an unavailable store does not make the caller hear that nothing was written', async () => {
  fixture.store.script(after(async () => fixture.store.failReads(1), answerLost));
  fixture.store.always(async (...step) => {
    fixture.clock.advance(tuning.outcomeWaitMs);
    fixture.store.failReads(1);
    return unavailable(...step);
  });
  const refusal = await refusalOf(gateway.run(createNode('a')));
  expect(refusal.code).toBe('unavailable');
  expect(refusal.message).toContain('may have been');
  expect(refusal.message).not.toContain('nothing was written');
  expect(await namesInLog()).toEqual(['before', 'a']);
});
