import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { AppendOutcome } from '../../src/storage/event-store.js';
import type { CommandFixture, FleetGateway } from '../support/command-fixture.js';
import { bytesOf, createCommandFixture, refusalOf } from '../support/command-fixture.js';
import { createNode, updateNode } from '../support/fleet.js';
import type { AppendStep } from '../support/scripted-event-store.js';
import { after, answerLost, notWritten, positionLost, unavailable } from '../support/scripted-event-store.js';
import { tuning } from '../../src/commands/tuning.js';

let fixture: CommandFixture;
let gateway: FleetGateway;

beforeEach(async () => {
  fixture = await createCommandFixture();
  gateway = await fixture.gateway();
  await gateway.run(createNode('before'));
});
afterEach(async () => {
  // Whatever happened: the gateway works again, and its fold is the log's.
  fixture.store.always(undefined);
  await gateway.run(createNode('afterwards'));
  expect(bytesOf(gateway.fleet)).toBe(bytesOf(await fixture.fold()));
  await fixture.close();
});

/** Not written before the caller has waited for the whole of the time it has. */
const silence: AppendStep = async (...step) => {
  fixture.clock.advance(tuning.outcomeWaitMs);
  return notWritten(...step);
};
const namesInLog = async (): Promise<readonly string[]> =>
  (await fixture.log()).map((event) => String(event.data['name'] ?? event.type));

test('written with the answer lost: its events are found, and nothing is appended again', async () => {
  fixture.store.script(answerLost);
  const [a, b] = await Promise.all([gateway.run(createNode('a')), gateway.run(createNode('b'))]);
  expect(fixture.store.appends.length).toBe(2);
  const log = await fixture.log();
  expect(a).toMatchObject({ kind: 'done', events: [{ id: log[1]?.id, revision: 1 }] });
  expect(b).toMatchObject({ kind: 'done', events: [{ id: log[2]?.id, revision: 2 }], position: log[2]?.position });
  expect(await namesInLog()).toEqual(['before', 'a', 'b']);
});

test('not written: the very same append is tried again', async () => {
  fixture.store.script(notWritten, notWritten);
  expect(await gateway.run(createNode('a'))).toMatchObject({ kind: 'done' });
  const [, ...tries] = fixture.store.appends;
  expect(tries.length).toBe(3);
  for (const { expected, events } of tries) expect([expected, events]).toEqual([0, tries[0]?.events]);
  expect(await namesInLog()).toEqual(['before', 'a']);
});

test('written late, before the next try: written once', async () => {
  let late: Promise<AppendOutcome> | undefined;
  fixture.store.script(async (write) => {
    late = delay(2).then(write);
    return { kind: 'unknown', cause: 'late' };
  });
  expect(await gateway.run(createNode('a'))).toMatchObject({ kind: 'done' });
  await late;
  expect(await namesInLog()).toEqual(['before', 'a']);
});

test('written with the answer lost and the log unreadable: the next try is answered as the first', async () => {
  fixture.store.script(after(async () => fixture.store.failReads(1), answerLost));
  expect(await gateway.run(createNode('a'))).toMatchObject({ kind: 'done' });
  expect(fixture.store.appends.length).toBe(3);
  expect(await namesInLog()).toEqual(['before', 'a']);
});

test('not written, and another instance comes first: decided again', async () => {
  const other = await fixture.other();
  fixture.store.script(async (...step) => {
    await other.run(createNode('theirs', { name: 'taken' }));
    return notWritten(...step);
  });
  const [mine, second] = await Promise.allSettled([
    gateway.run(createNode('mine', { name: 'taken' })),
    gateway.run(createNode('second')),
  ]);
  expect(mine).toMatchObject({ status: 'rejected', reason: { code: 'conflict' } });
  expect(second).toMatchObject({ status: 'fulfilled' });
  expect(await namesInLog()).toEqual(['before', 'taken', 'second']);
});

test('written with the answer lost, and another instance behind it: both stand', async () => {
  const other = await fixture.other();
  fixture.store.script(async (...step) => {
    const outcome = await answerLost(...step);
    await other.run(createNode('theirs'));
    return outcome;
  });
  expect(await gateway.run(createNode('mine'))).toMatchObject({ kind: 'done', events: [{ revision: 1 }] });
  expect(await namesInLog()).toEqual(['before', 'mine', 'theirs']);
  expect((await refusalOf(gateway.run(createNode('again', { name: 'theirs' })))).code).toBe('conflict');
});

test('never told: after a bounded time the caller hears that it may have been written', async () => {
  fixture.store.always(silence);
  const refusal = await refusalOf(gateway.run(createNode('a')));
  expect(refusal.code).toBe('unavailable');
  expect(refusal.message).toContain('may have been');
  expect(fixture.store.appends.length).toBe(2);
  expect(await namesInLog()).toEqual(['before']);
});

test('written after the gateway gave up: found as the work of another', async () => {
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

test('unknown first and unavailable ever after: nobody is told that nothing was written', async () => {
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

test('the ids are looked for even at the last try', async () => {
  fixture.store.script(async (...step) => {
    fixture.clock.advance(tuning.outcomeWaitMs);
    return answerLost(...step);
  });
  expect(await gateway.run(createNode('a'))).toMatchObject({ kind: 'done' });
});

test('tries are bounded even when no time passes', async () => {
  const other = await fixture.gateway();
  let tries = 0;
  fixture.store.always(async (...step) => {
    tries += 1;
    // The last of them comes with a closing gateway, so that the test need not wait out every backoff.
    if (tries === 3) void other.close();
    return notWritten(...step);
  });
  expect((await refusalOf(other.run(createNode('a')))).message).toContain('may have been');
  expect(tries).toBe(3);
});

test('a missing position is read back', async () => {
  fixture.store.script(positionLost);
  const outcome = await gateway.run(createNode('a'));
  expect(outcome).toMatchObject({ kind: 'done', position: (await fixture.log())[1]?.position });
  expect(fixture.store.appends.length).toBe(2);
  // Written, but its position can't be read just now: looked for again, and written once.
  fixture.store.script(after(async () => fixture.store.failReads(1), positionLost));
  expect(await gateway.run(updateNode('a', { name: 'b' }))).toMatchObject({ kind: 'done' });
  expect((await fixture.log()).length).toBe(3);
});
