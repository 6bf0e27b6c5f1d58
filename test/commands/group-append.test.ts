/** Commands that wait together are decided on one fold and appended together. */
import { atOnce } from '../../src/kernel/pieces.js';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { fleetAggregate } from '../../src/commands/aggregate.js';
import type { FleetCommand } from '../../src/domain/fleet/resources.js';
import { ok } from '../../src/kernel/result.js';
import { limits } from '../../src/kernel/limits.js';
import {
  actor,
  bytesOf,
  createCommandFixture,
  refusalOf,
  type CommandFixture,
  type FleetGateway,
} from '../support/command-fixture.js';
import { createNode, nodeId, sealed, updateNode } from '../support/fleet.js';
import { storesInMemory } from '../support/stores-in-memory.js';
import { after, unavailable } from '../support/scripted-event-store.js';

const KiB = 1024;
let fixture: CommandFixture;
let gateway: FleetGateway;

beforeEach(async () => {
  fixture = await createCommandFixture(storesInMemory());
  gateway = await fixture.gateway();
});
afterEach(() => fixture.close());

const names = (count: number): readonly string[] => Array.from({ length: count }, (_, index) => `n${index}`);
const context = (requestId: string) => ({ actor, requestId });

test('commands that wait together are appended together in order, each answered with its own result', async () => {
  const outcomes = await Promise.all(
    names(250).map((name) =>
      gateway.execute(createNode(name), context(name), (fleet) => fleet.tables.node.get(nodeId(name))?.name),
    ),
  );
  expect(fixture.store.appends.map(({ events }) => events.length)).toEqual([100, 100, 50]);
  expect(outcomes.map((outcome) => outcome.kind === 'done' && outcome.result)).toEqual(names(250));
  const log = await fixture.log();
  expect(log.map((event) => event.metadata.request_id)).toEqual(names(250));
  for (const [index, outcome] of outcomes.entries()) {
    if (outcome.kind !== 'done') throw new Error(outcome.kind);
    expect(outcome.events.map(({ id, revision }) => ({ id, revision }))).toEqual([
      { id: log[index]?.id, revision: index },
    ]);
    expect(outcome.commandId).toBe(log[index]?.metadata.command.id);
    expect(outcome.position).toBeGreaterThanOrEqual(log[index]?.position ?? Infinity);
  }
});

test('commands that arrive during an append go into the next one, never split', async () => {
  const psk = { fingerprint: 'f', verifier: sealed };
  const first = gateway.run(createNode('first'));
  let later: Promise<unknown>[] = [];
  fixture.store.script(
    after(async () => {
      later = names(120).map((name) => gateway.run(createNode(name, { psk })));
    }),
  );
  await first;
  await Promise.all(later);
  expect(fixture.store.appends.map(({ events }) => events.length)).toEqual([1, 100, 100, 40]);
  for (const { events } of fixture.store.appends) {
    expect(events[0]?.metadata.command.index).toBe(0);
    const last = events.at(-1)?.metadata.command;
    expect(last?.index).toBe((last?.count ?? 0) - 1);
  }
});

test('large commands are appended in groups below 512 KiB', async () => {
  const description = 'd'.repeat(90 * 1024);
  await Promise.all(names(20).map((name) => gateway.run(createNode(name, { description }))));
  expect(fixture.store.appends.map(({ events }) => events.length)).toEqual([5, 5, 5, 5]);
  for (const { events } of fixture.store.appends) {
    const bytes = events.reduce((sum, event) => sum + Buffer.byteLength(JSON.stringify(event)), 0);
    expect(bytes).toBeLessThanOrEqual(limits.events.appendBytes);
  }
});

/** A gateway on which a refresh of the node writes as many edits of it as are asked for, with descriptions of that size. */
function wordyGateway(edits: number, bytes: number): Promise<FleetGateway> {
  const description = { from: null, to: 'ä'.repeat(bytes / 2) };
  const edit = { type: 'NodeUpdated', data: { node_id: nodeId('a'), changes: { description } } };
  const wordy: typeof fleetAggregate = {
    ...fleetAggregate,
    decide: (fleet, command) =>
      command.type === 'RefreshNodeConfig'
        ? atOnce(ok(Array(edits).fill(edit)))
        : fleetAggregate.decide(fleet, command),
  };
  return fixture.gateway({}, wordy);
}

test.each([
  ['five events that no append of the store takes', 5, 240 * KiB],
  ['five events that one append of the store would take', 5, 110 * KiB],
  ['one event', 1, 512 * KiB],
])('a command of more than 512 KiB in %s is refused alone, naming the size', async (_what, edits, bytes) => {
  const wordy = await wordyGateway(edits, bytes);
  const run = (command: FleetCommand) => wordy.run(command, context('test'));
  const [before, large, behind] = await Promise.allSettled([
    run(createNode('a')),
    run({ type: 'RefreshNodeConfig', id: nodeId('a') }),
    run(createNode('b')),
  ]);
  expect([before.status, behind.status]).toEqual(['fulfilled', 'fulfilled']);
  expect(large).toMatchObject({ status: 'rejected', reason: { code: 'payload_too_large', httpStatus: 413 } });
  const [, size] = / ([0-9]+) bytes/.exec((large as PromiseRejectedResult).reason.message) ?? [];
  expect(Number(size)).toBeGreaterThan(edits * bytes);
  expect(fixture.store.appends.map(({ events }) => events.length)).toEqual([2]);
  expect((await fixture.log()).map(({ data }) => data['name'])).toEqual(['a', 'b']);
  await wordy.close();
});

test('one command may have more events than a group of commands, and is then appended alone', async () => {
  const wordy = await wordyGateway(300, 1 * KiB);
  const run = (command: FleetCommand) => wordy.run(command, context('test'));
  const commands = [createNode('a'), { type: 'RefreshNodeConfig', id: nodeId('a') } as const, createNode('b')];
  await Promise.all(commands.map(run));
  expect(fixture.store.appends.map(({ events }) => events.length)).toEqual([1, 300, 1]);
  const bytes = fixture.store.appends[1]?.events.reduce(
    (sum, event) => sum + Buffer.byteLength(JSON.stringify(event)),
    0,
  );
  expect(bytes).toBeLessThanOrEqual(limits.events.commandBytes);
  await wordy.close();
});

test('an append that throws leaves nothing behind: the same commands are decided as before', async () => {
  fixture.store.script(async () => {
    throw new Error('the store has a fault');
  });
  const failed = await Promise.allSettled([gateway.run(createNode('a')), gateway.run(createNode('b'))]);
  expect(failed.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
  expect(bytesOf(gateway.fleet)).toBe(bytesOf(await fixture.fold()));
  await Promise.all([gateway.run(createNode('a')), gateway.run(createNode('b'))]);
  expect((await fixture.log()).map(({ revision }) => revision)).toEqual([0, 1]);
  expect(bytesOf(gateway.fleet)).toBe(bytesOf(await fixture.fold()));
});

test('a refused command, or one whose select throws, fails alone', async () => {
  const [first, again, second, faulty, third] = await Promise.allSettled([
    gateway.run(createNode('a')),
    gateway.run(createNode('A')),
    gateway.run(createNode('b')),
    gateway.execute(createNode('c'), context('c'), () => {
      throw new Error('secret detail');
    }),
    gateway.run(createNode('d')),
  ]);
  expect([first.status, again.status, second.status, faulty.status, third.status]).toEqual([
    'fulfilled',
    'rejected',
    'fulfilled',
    'rejected',
    'fulfilled',
  ]);
  expect(again).toMatchObject({ reason: { code: 'conflict' } });
  expect(faulty).toMatchObject({ reason: { code: 'internal' } });
  expect(JSON.stringify((faulty as PromiseRejectedResult).reason.message)).not.toContain('secret');
  expect(fixture.store.appends.length).toBe(1);
  const fold = await fixture.fold();
  expect([...fold.tables.node.values()].map(({ name }) => name)).toEqual(['a', 'b', 'd']);
  expect(bytesOf(gateway.fleet)).toBe(bytesOf(fold));
});

test('a command is decided on the events of the earlier ones in its group', async () => {
  const [, renamed, taken] = await Promise.all([
    gateway.run(createNode('a')),
    gateway.run(updateNode('a', { name: 'b' })),
    gateway.run(createNode('a2', { name: 'a' })),
  ]);
  expect(fixture.store.appends.length).toBe(1);
  expect(renamed.kind).toBe('done');
  expect(taken.kind).toBe('done');
});

test('a refusal that depends on an uncommitted command is decided again when the append fails', async () => {
  await gateway.run(createNode('x'));
  const other = await fixture.other();
  // The other instance changes x first, so the rename is refused and its name stays free.
  fixture.store.script(after(() => other.run(updateNode('x', { description: 'newer' }))));
  const [renamed, created] = await Promise.allSettled([
    gateway.run({ type: 'UpdateNode', id: nodeId('x'), ifMatch: [1], name: 'a' }),
    gateway.run(createNode('a')),
  ]);
  expect(renamed).toMatchObject({ status: 'rejected', reason: { code: 'precondition_failed' } });
  expect(created).toMatchObject({ status: 'fulfilled' });
  expect(bytesOf(gateway.fleet)).toBe(bytesOf(await fixture.fold()));
});

test('a refusal that depends on a command that was not written is not answered', async () => {
  fixture.store.script(unavailable);
  const [created, refused] = await Promise.all([
    refusalOf(gateway.run(createNode('a'))),
    refusalOf(gateway.run(createNode('A'))),
  ]);
  expect(created.code).toBe('unavailable');
  expect(refused.code).toBe('unavailable');
  expect(await fixture.log()).toEqual([]);
});

test('a command is always started, also right at the end of the previous run', async () => {
  for (const name of names(300)) await gateway.run(createNode(name));
  // Started at every depth of microtasks after an answer, so that one of them meets the end of the previous run.
  for (let depth = 0; depth < 30; depth += 1) {
    await gateway.run(createNode(`d${depth}`));
    for (let turn = 0; turn < depth; turn += 1) await undefined;
    await gateway.run(createNode(`e${depth}`));
  }
  expect((await fixture.log()).length).toBe(360);
});
