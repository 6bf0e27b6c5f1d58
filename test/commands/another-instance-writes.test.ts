/** A gateway whose fold is behind because another instance has written: every answer is judged by the newest log. */
import { afterEach, beforeEach, expect, onTestFinished, test, vi } from 'vitest';
import { streams, type EventMetadata } from '../../src/kernel/event.js';
import {
  actor,
  bytesOf,
  createCommandFixture,
  refusalOf,
  type CommandFixture,
  type FleetGateway,
} from '../support/command-fixture.js';
import { linked } from '../support/log-chain.js';
import { createNode, nodeId, updateNode } from '../support/fleet.js';
import { storesInMemory } from '../support/stores-in-memory.js';
import { after } from '../support/scripted-event-store.js';
import { shortSleeps, turnsWhile } from '../support/short-sleeps.js';
import { tuning } from '../../src/commands/tuning.js';

let fixture: CommandFixture;
let gateway: FleetGateway;
let other: FleetGateway;

beforeEach(async () => {
  fixture = await createCommandFixture(storesInMemory());
  gateway = await fixture.gateway();
  other = await fixture.other();
});
afterEach(() => fixture.close());

const unknownEvent = async (): Promise<void> => {
  const { revision, logChain } = other.fleet;
  const metadata: EventMetadata = {
    command: { id: 'c', index: 0, count: 1 },
    actor,
    request_id: 'r',
    occurred_at: '2025-01-01T00:00:00.000Z',
    schema_version: 1,
  };
  const id = '00000000-0000-4000-8000-000000000001';
  const events = [{ id, type: 'NodeTeleported', data: { to: 'secret place' }, metadata }];
  const own = linked(events, logChain.value, streams.fleet, fixture.options.logChain);
  await fixture.stores.eventStore.append(streams.fleet, revision.value < 0 ? 'no_stream' : revision.value, own);
};

test('an instance that is behind catches up and decides again', async () => {
  await other.run(createNode('a'));
  const created = await gateway.run(createNode('b'));
  expect(created).toMatchObject({ kind: 'done', events: [{ revision: 1 }] });
  expect((await refusalOf(gateway.run(createNode('A2', { name: 'A' })))).code).toBe('conflict');
  expect(bytesOf(gateway.fleet)).toBe(bytesOf(await fixture.fold()));
});

test('one of two instances that take the same name at the same time is refused', async () => {
  for (let round = 0; round < 20; round += 1) {
    const results = await Promise.allSettled([
      gateway.run(createNode(`a${round}`, { name: `name ${round}` })),
      other.run(createNode(`b${round}`, { name: `NAME ${round}` })),
    ]);
    expect(results.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
    expect(results.find(({ status }) => status === 'rejected')).toMatchObject({ reason: { code: 'conflict' } });
  }
  expect((await fixture.log()).length).toBe(20);
});

test('a refusal is decided on the newest log', async () => {
  await gateway.run(createNode('a'));
  await other.run({ type: 'DeleteNode', id: nodeId('a'), ifMatch: undefined });
  // In the stale fold the name is still taken.
  expect(await gateway.run(createNode('b', { name: 'a' }))).toMatchObject({ kind: 'done' });
  await other.run(createNode('c'));
  // In the stale fold there is no such node.
  expect(await gateway.run(updateNode('c', { name: 'd' }))).toMatchObject({ kind: 'done' });
});

test('a command that changes nothing is decided on the newest log', async () => {
  await gateway.run(createNode('a', { description: 'old' }));
  await other.run(updateNode('a', { description: 'new' }));
  const outcome = await gateway.execute(updateNode('a', { description: 'old' }), { actor, requestId: 'r' }, (fleet) =>
    fleet.tables.node.get(nodeId('a')),
  );
  expect(outcome).toMatchObject({
    kind: 'done',
    events: [{ type: 'NodeUpdated' }],
    result: { description: 'old', version: 3 },
  });
});

test('an answer without events carries the position of the newest event that it was decided on', async () => {
  await other.run(createNode('a'));
  await other.run(createNode('b'));
  const newest = (await fixture.log()).at(-1)?.position;
  const unchanged = await gateway.run(updateNode('a', { name: 'a' }));
  expect(unchanged).toMatchObject({ kind: 'done', commandId: '', events: [], position: newest });
  // So does an instance that starts with these events in the log.
  const started = await fixture.gateway();
  expect(await started.run(updateNode('a', { name: 'a' }))).toMatchObject({ position: newest });
  expect(fixture.store.appends).toEqual([]);
});

test('a gateway that always loses the race gives up, writes nothing and recovers', async () => {
  let round = 0;
  fixture.store.always(
    after(async () => {
      round += 1;
      await other.run(createNode(`o${round}`));
    }),
  );
  const refusal = await refusalOf(gateway.run(createNode('here')));
  expect(refusal.code).toBe('unavailable');
  expect(refusal.message).toContain('nothing was written');
  // On a busy machine the caller's time may run out first.
  expect(round).toBeLessThanOrEqual(tuning.gatewayAttempts + 1);
  expect(round).toBeGreaterThan(10);
  fixture.store.always(undefined);
  expect(await gateway.run(createNode('here'))).toMatchObject({ kind: 'done' });
  expect(bytesOf(gateway.fleet)).toBe(bytesOf(await fixture.fold()));
});

test('a conflict by events that no read shows yet is no try: the command waits, and is written behind them', async () => {
  await gateway.run(createNode('a'));
  let refused = 0;
  const most = tuning.gatewayAttempts + 1;
  fixture.store.always(async (write, { expected }) => {
    if (refused > most) return write();
    refused += 1;
    return { kind: 'conflict', actual: Number(expected) + 1 };
  });
  const sleeps = shortSleeps();
  try {
    expect(await gateway.run(createNode('here'))).toMatchObject({ kind: 'done', events: [{ revision: 1 }] });
  } finally {
    sleeps.restore();
  }
  const waits = sleeps.slept.filter((ms) => ms > 1);
  expect(waits.length).toBeGreaterThanOrEqual(refused);
  expect(Math.max(...waits)).toBeLessThanOrEqual(tuning.unchangedRetry.maxMs);
  expect(refused).toBe(most + 1);
});

test('a caller whose time ends meanwhile is told that nothing was written, and a stop ends the wait', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  onTestFinished(() => void vi.useRealTimers());
  let refused = 0;
  fixture.store.always(async () => {
    refused += 1;
    return { kind: 'conflict', actual: 7 };
  });
  const late = refusalOf(gateway.run(createNode('a')));
  await turnsWhile(() => refused < 3);
  vi.advanceTimersByTime(tuning.commandAnswerMs);
  expect((await late).message).toContain('nothing was written');
  const last = refusalOf(gateway.run(createNode('c')));
  const before = refused;
  await turnsWhile(() => refused === before);
  await gateway.close();
  expect((await last).message).toBe('the service is shutting down; nothing was written');
});

test('an unknown event at the end of the log makes every answer unavailable and is named by its type only', async () => {
  await gateway.run(createNode('a'));
  await other.run(createNode('b'));
  await unknownEvent();
  const before = bytesOf(await other.fleet);
  for (const command of [createNode('c'), createNode('a'), updateNode('a', { name: 'a' })]) {
    const refusal = await refusalOf(gateway.run(command));
    expect(refusal.code).toBe('unavailable');
    expect(refusal.message).toContain('NodeTeleported');
    expect(refusal.message).not.toContain('secret');
  }
  expect(bytesOf(gateway.fleet)).toBe(before);
  await expect(fixture.gateway()).rejects.toThrow('NodeTeleported');
});
