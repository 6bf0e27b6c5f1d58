/** What callers of the gateway are told beside their result: positions, waits for the read models, reasons of a refusal. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { fleetAggregate } from '../../src/commands/aggregate.js';
import { asServiceError } from '../../src/commands/deciding-fold.js';
import { createGateway } from '../../src/commands/gateway.js';
import { BrokenChainError } from '../../src/domain/log-chain/links.js';
import { UnknownEventError } from '../../src/domain/log/unknown-event.js';
import { emptyFleet } from '../../src/domain/fleet/fleet.js';
import { ServiceError } from '../../src/kernel/errors.js';
import { streams } from '../../src/kernel/event.js';
import { limits } from '../../src/kernel/limits.js';
import type { EventStore } from '../../src/storage/event-store.js';
import { BrokenLogError } from '../../src/storage/follow.js';
import type { CommandFixture } from '../support/command-fixture.js';
import { actor, createCommandFixture, refusalOf } from '../support/command-fixture.js';
import { createNode, nodeId, perform, sealed, updateNode } from '../support/fleet.js';
import { storesInMemory } from '../support/stores-in-memory.js';
import { unavailable } from '../support/scripted-event-store.js';

let fixture: CommandFixture;
beforeEach(async () => {
  fixture = await createCommandFixture(storesInMemory());
});
afterEach(() => fixture.close());

const psk = { fingerprint: 'f', verifier: sealed };
const idempotency = { key_hash: 'k', body_hash: 'b' };

/** Read models that take 30 ms for each wait, and hold an event or do not. */
function readModels(follow: boolean) {
  const waits: unknown[] = [];
  const applied = async (...wait: unknown[]): Promise<boolean> => {
    waits.push(wait);
    fixture.clock.advance(30);
    return follow;
  };
  return { waits, projections: { applied } };
}
const waitFor = (revision: number) => [streams.fleet, revision, limits.rest.projectionWaitMs];

describe('the wait for the read models', () => {
  test.each([true, false])('is one for all commands of a group, and each is told how it ended (%s)', async (follow) => {
    const { waits, projections } = readModels(follow);
    const gateway = await fixture.gateway({ projections });
    fixture.clock.advance(5_000);
    const outcomes = await Promise.all(['a', 'b', 'c'].map((name) => gateway.run(createNode(name, { psk }))));
    expect(waits).toEqual([waitFor(5)]);
    const told = { kind: 'done', lagging: !follow, waitedMs: 30 };
    expect(outcomes).toMatchObject([told, told, told]);
    await gateway.run(createNode('d'));
    expect(waits).toEqual([waitFor(5), waitFor(6)]);
  });

  test('is not needed for a command that changes nothing, nor for a read', async () => {
    const { waits, projections } = readModels(false);
    const gateway = await fixture.gateway({ projections });
    await gateway.run(createNode('a'));
    const unchanged = await gateway.execute(
      updateNode('a', { name: 'a' }),
      { actor, requestId: 'r' },
      (fleet) => fleet.tables.node.size,
    );
    expect(unchanged).toMatchObject({ kind: 'done', result: 1, lagging: false, waitedMs: 0 });
    expect(await gateway.read((fleet) => fleet.tables.node.size)).toBe(1);
    expect(waits.length).toBe(1);
  });

  test.each([
    ['one event', undefined, 0],
    ['several events', psk, 1],
  ])('of a repeat is for the end of the first command, of %s', async (_of, of, last) => {
    const { waits, projections } = readModels(false);
    const gateway = await fixture.gateway({ projections });
    await gateway.run(createNode('a', of === undefined ? {} : { psk: of }), { idempotency });
    const [end] = (await fixture.log()).slice(-1);
    await gateway.run(createNode('b'));
    const repeated = await gateway.run(createNode('c', { name: 'a' }), { idempotency });
    expect(repeated).toMatchObject({ kind: 'repeated', position: end?.position, lagging: true });
    expect(waits.at(-1)).toEqual(waitFor(last));
  });

  test('of a repeat whose events the log no longer gives is for the first of them, at the newest position', async () => {
    let gone = false;
    const { waits, projections } = readModels(true);
    const inner = fixture.store;
    const eventStore: EventStore = {
      ...inner,
      async *read(...range) {
        if (!gone) yield* inner.read(...range);
      },
    };
    const gateway = await fixture.gateway({ projections, eventStore });
    await gateway.run(createNode('a', { psk }), { idempotency });
    await gateway.run(createNode('b'));
    const [newest] = (await fixture.log()).slice(-1);
    gone = true;
    const repeated = await gateway.run(createNode('c', { name: 'a' }), { idempotency });
    expect(repeated).toMatchObject({ kind: 'repeated', position: newest?.position, lagging: false });
    expect(waits.at(-1)).toEqual(waitFor(0));
  });

  test('of a repeat is for the first event when the log no longer gives the last', async () => {
    let gone = false;
    const inner = fixture.store;
    const eventStore: EventStore = {
      ...inner,
      async *read(...range) {
        for await (const event of inner.read(...range)) if (!gone || event.revision === 0) yield event;
      },
    };
    const gateway = await fixture.gateway({ eventStore });
    await gateway.run(createNode('a', { psk }), { idempotency });
    gone = true;
    const [first] = await fixture.log();
    const repeated = await gateway.run(createNode('c', { name: 'a' }), { idempotency });
    expect(repeated).toMatchObject({ kind: 'repeated', position: first?.position });
  });
});

describe('a read', () => {
  test('is of the end of the log, behind the commands before it, and writes nothing', async () => {
    const [gateway, other] = [await fixture.gateway(), await fixture.other()];
    await other.run(createNode('a'));
    const written = gateway.run(createNode('b'));
    const names = await gateway.read((fleet) => [...fleet.tables.node.values()].map(({ name }) => name));
    expect(names).toEqual(['a', 'b']);
    await written;
    expect(fixture.store.appends.at(-1)?.events.length).toBe(1);
    await other.run(createNode('c'));
    const before = fixture.store.appends.length;
    expect(await gateway.read((fleet) => fleet.tables.node.size)).toBe(3);
    expect(fixture.store.appends.length).toBe(before);
  });

  test('is refused while nothing may be written, and after the end of the gateway', async () => {
    let reason: string | undefined = 'the clock is wrong';
    const gateway = await fixture.gateway({ readOnly: () => reason });
    expect(await refusalOf(gateway.read(() => 1))).toMatchObject({ code: 'unavailable', message: reason });
    reason = undefined;
    expect(await gateway.read(() => 1)).toBe(1);
    await gateway.close();
    expect((await refusalOf(gateway.read(() => 1))).message).toContain('shutting down');
  });
});

test('a fold that is handed over to the gateway is never rolled back', async () => {
  const [fleet, log] = [emptyFleet(), emptyFleet()];
  const first = perform(fleet, createNode('a'));
  perform(log, createNode('a'));
  if (first.kind !== 'written') throw new Error(first.kind);
  await fixture.stores.eventStore.append(streams.fleet, 'no_stream', first.command.events);
  const gateway = await createGateway(fleetAggregate(fleet), fixture.options);
  fixture.store.script(unavailable);
  const run = (name: string) => gateway.execute(createNode(name), { actor, requestId: 'r' }, () => undefined);
  expect((await refusalOf(run('b'))).code).toBe('unavailable');
  expect(fleet.tables.node.get(nodeId('a'))?.name).toBe('a');
  // Its position counts as the newest, until a newer one is known.
  const unchanged = await gateway.execute(updateNode('a', { name: 'a' }), { actor, requestId: 'r' }, () => undefined);
  expect(unchanged.position).toBe(first.command.events[0].position);
  await gateway.close();
});

test('a gateway begins with what the log holds, and tells its newest position', async () => {
  const other = await fixture.other();
  for (const name of ['a', 'b']) await other.run(createNode(name));
  const [newest] = (await fixture.log()).slice(-1);
  const gateway = await fixture.gateway();
  expect(gateway.fleet.tables.node.size).toBe(2);
  expect(await gateway.run(updateNode('a', { name: 'a' }))).toMatchObject({ position: newest?.position });
});

test('the answer to a written command is at the position of its append, also when the store tells an older one', async () => {
  const gateway = await fixture.gateway();
  await gateway.run(createNode('a'));
  const [newest] = (await fixture.log()).slice(-1);
  fixture.store.script(async (write) => {
    const outcome = await write();
    return outcome.kind === 'appended' ? { ...outcome, position: 1 } : outcome;
  });
  expect(await gateway.run(createNode('b'))).toMatchObject({ position: newest?.position });
});

test('a command that its own events rule out is refused, and leaves nothing in the fold', async () => {
  const fleet = emptyFleet();
  const aggregate = fleetAggregate(fleet);
  const gateway = await createGateway(
    {
      ...aggregate,
      apply(state, command) {
        aggregate.apply(state, command);
        const { name } = command.events[0].data;
        return name === 'too much' ? { code: 'conflict', message: 'its snapshot would be too large' } : undefined;
      },
    },
    fixture.options,
  );
  const run = (name: string) => gateway.execute(createNode(name), { actor, requestId: 'r' }, () => undefined);
  const [, refused] = await Promise.allSettled([run('a'), run('too much'), run('b')]);
  expect(refused).toMatchObject({ status: 'rejected', reason: { message: 'its snapshot would be too large' } });
  expect([...fleet.tables.node.values()].map(({ name }) => name)).toEqual(['a', 'b']);
  expect((await fixture.log()).map(({ revision }) => revision)).toEqual([0, 1]);
  await gateway.close();
});

test('no more commands are decided together than an append may hold, also when they write nothing', async () => {
  let looks = 0;
  const inner = fixture.store;
  const eventStore: EventStore = {
    ...inner,
    read(...range) {
      looks += 1;
      return inner.read(...range);
    },
  };
  const gateway = await fixture.gateway({ eventStore });
  looks = 0;
  await Promise.all(Array.from({ length: 10 * limits.events.appendEvents }, () => gateway.read(() => 1)));
  // One look at the end of the log for each group.
  expect(looks).toBeGreaterThan(10);
  expect(looks).toBeLessThan(30);
});

describe('what a caller may see of an error', () => {
  test.each([
    ['an unknown event', new UnknownEventError('svc-fleet', 4, 'MoonPhaseChanged', 1)],
    ['a broken chain', new BrokenChainError({ kind: 'altered', stream: 'svc-fleet', revision: 4, commandId: 'c' })],
    ['an incomplete command', new BrokenLogError('command c has 1 of 2 events')],
  ])('%s makes the instance read-only, with its reason', (_what, error) => {
    const shown = asServiceError(error);
    expect([shown.code, shown.message]).toEqual(['unavailable', expect.stringContaining(error.message)]);
    expect(shown.message).toContain('read-only');
  });

  test('a refusal is seen as it is, and anything else only as a fault, with its cause for the log', () => {
    const refusal = new ServiceError('conflict', 'taken');
    expect(asServiceError(refusal)).toBe(refusal);
    const fault = new TypeError('secret detail');
    for (const thrown of [fault, 'a text']) {
      const shown = asServiceError(thrown);
      expect([shown.code, shown.cause]).toEqual(['internal', thrown]);
      expect(shown.message).not.toContain('secret');
    }
  });
});
