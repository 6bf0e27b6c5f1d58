/** The gateway while the event store fails, hangs or cannot be read: what callers are told and what is written. */
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import {
  bytesOf,
  createCommandFixture,
  refusalOf,
  type CommandFixture,
  type FleetGateway,
} from '../support/command-fixture.js';
import {
  chainId,
  createChain,
  createNode,
  createUpstream,
  deployChain,
  hop,
  nodeId,
  settings,
  updateNode,
} from '../support/fleet.js';
import { storesInMemory } from '../support/stores-in-memory.js';
import { notWritten, unavailable, type AppendStep } from '../support/scripted-event-store.js';
import { tuning } from '../../src/commands/tuning.js';

let fixture: CommandFixture;
let gateway: FleetGateway;

beforeEach(async () => {
  fixture = await createCommandFixture(storesInMemory());
  gateway = await fixture.gateway();
});
afterEach(() => fixture.close());

const idempotency = { key_hash: 'k', body_hash: 'b' };

/** Commands that touch every table and index of the fold. */
const everything = () => [
  gateway.run(createNode('a3'), { idempotency }),
  gateway.run(updateNode('a1', { name: 'renamed', labels: { zone: 'x' } })),
  gateway.run(createUpstream('up2')),
  gateway.run(createChain('c2', [hop('a1', 9000), hop('a2', 9001)])),
  gateway.run(deployChain('c2')),
  gateway.run({
    type: 'DeleteChain',
    id: chainId('c1'),
    ifMatch: undefined,
  }),
  gateway.run(
    settings({ multiplex: true, multiplex_port: 7000, nodes: [{ node_id: nodeId('a2'), multiplex: false }] }),
  ),
  gateway.run({
    type: 'IssueNodePsk',
    id: nodeId('a1'),
    fingerprint: 'f',
    verifier: { alg: 'xc20p', key_id: 'k', nonce: 'n', ct: 'c' },
  }),
  gateway.run({ type: 'RaiseNodeGeneration', id: nodeId('a1'), reported: 5000 }),
  gateway.run({ type: 'RaiseCompilerVersion', version: 9 }),
  gateway.run({ type: 'DeleteNode', id: nodeId('spare'), ifMatch: undefined }),
];

async function populate(): Promise<void> {
  for (const name of ['a1', 'a2', 'spare']) await gateway.run(createNode(name));
  await gateway.run(createUpstream('up'));
  await gateway.run(createChain('c1', [hop('a1', 8000)]));
  await gateway.run(deployChain('c1'));
}

test.each<readonly [string, AppendStep]>([
  ['unavailable', unavailable],
  ['unknown', (...step) => (fixture.clock.advance(tuning.outcomeWaitMs), notWritten(...step))],
])(
  'an append with the outcome %s leaves the fold as it was, byte for byte, and the next one succeeds',
  async (_, step) => {
    await populate();
    const before = bytesOf(gateway.fleet);
    fixture.store.always(step);
    for (const result of await Promise.allSettled(everything())) {
      expect(result).toMatchObject({ status: 'rejected', reason: { code: 'unavailable' } });
    }
    expect(bytesOf(gateway.fleet)).toBe(before);
    expect(bytesOf(await fixture.fold())).toBe(before);

    fixture.store.always(undefined);
    for (const result of await Promise.allSettled(everything())) expect(result.status).toBe('fulfilled');
    expect(bytesOf(gateway.fleet)).not.toBe(before);
    expect(bytesOf(gateway.fleet)).toBe(bytesOf(await fixture.fold()));
  },
);

test('a refusal as unavailable says that nothing was written', async () => {
  fixture.store.script(unavailable);
  const refusal = await refusalOf(gateway.run(createNode('a')));
  expect([refusal.code, refusal.httpStatus]).toEqual(['unavailable', 503]);
  expect(refusal.message).toContain('nothing was written');
  expect(fixture.store.appends.length).toBe(1);
});

test('while the store hangs, callers are told in time whether their change may have been written', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  let answer = (): void => undefined;
  try {
    const hanging = new Promise<void>((resolve) => (answer = resolve));
    let appending = (): void => undefined;
    const begun = new Promise<void>((resolve) => (appending = resolve));
    fixture.store.script(async (write) => {
      appending();
      await hanging;
      return write();
    });
    const first = refusalOf(gateway.run(createNode('first')));
    await begun;
    const second = refusalOf(gateway.run(createNode('second')));
    await vi.advanceTimersByTimeAsync(tuning.commandAnswerMs);
    expect(await first).toMatchObject({ code: 'unavailable', message: expect.stringContaining('may have been') });
    expect(await second).toMatchObject({
      code: 'unavailable',
      message: expect.stringContaining('nothing was written'),
    });
  } finally {
    vi.useRealTimers();
    answer();
  }
  expect(await gateway.run(createNode('third'))).toMatchObject({ kind: 'done' });
  const created = (await fixture.log()).map(({ data }) => data['name']);
  expect(created).toEqual(['first', 'third']);
});

test('while the log cannot be read, answers without events are refused as unavailable', async () => {
  await gateway.run(createNode('a'));
  fixture.store.failReads(1);
  expect((await refusalOf(gateway.run(createNode('a')))).code).toBe('unavailable');
  expect((await refusalOf(gateway.run(createNode('a')))).code).toBe('conflict');
});

test('a read-only instance refuses with its reason and does not call the store', async () => {
  let reason: string | undefined = 'the log holds the unknown event X';
  const readOnly = await fixture.gateway({ readOnly: () => reason });
  expect(await refusalOf(readOnly.run(createNode('a')))).toMatchObject({ code: 'unavailable', message: reason });
  expect(fixture.store.appends).toEqual([]);
  reason = undefined;
  expect(await readOnly.run(createNode('a'))).toMatchObject({ kind: 'done' });
});

test('the queue is bounded: a command that does not fit is refused at once', async () => {
  const waiting = Array.from({ length: tuning.gatewayQueue }, () =>
    gateway.run({ type: 'RaiseCompilerVersion', version: 0 }),
  );
  const refusal = await refusalOf(gateway.run(createNode('one too many')));
  expect(refusal.code).toBe('unavailable');
  expect(refusal.message).toContain('nothing was written');
  await Promise.all(waiting);
  expect(await gateway.run(createNode('in time'))).toMatchObject({ kind: 'done' });
});

test('close waits for accepted commands and refuses new ones', async () => {
  let closed = false;
  let closing: Promise<void> | undefined;
  fixture.store.script(async (write) => {
    closing = gateway.close().then(() => {
      closed = true;
    });
    await new Promise((resolve) => setImmediate(resolve));
    expect(closed).toBe(false);
    return write();
  });
  const accepted = Array.from({ length: 150 }, (_, index) => gateway.run(createNode(`n${index}`)));
  await Promise.all(accepted);
  await closing;
  expect((await refusalOf(gateway.run(createNode('late')))).code).toBe('unavailable');
  expect((await fixture.log()).length).toBe(150);
});
