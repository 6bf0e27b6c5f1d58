/** What callers of the gateway are told beside their result: positions, and reasons of a refusal. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { fleetAggregate } from '../../src/commands/aggregate.js';
import { asServiceError } from '../../src/commands/group.js';
import { BrokenChainError } from '../../src/domain/log-chain/links.js';
import { UnknownEventError } from '../../src/domain/log/upcast.js';
import { ServiceError } from '../../src/kernel/errors.js';
import { limits } from '../../src/kernel/limits.js';
import type { EventStore } from '../../src/storage/event-store.js';
import { BrokenLogError } from '../../src/storage/broken-log.js';
import { createCommandFixture, refusalOf, type CommandFixture } from '../support/command-fixture.js';
import { createNode, sealed } from '../support/fleet.js';
import { storesInMemory } from '../support/stores-in-memory.js';

let fixture: CommandFixture;
beforeEach(async () => {
  fixture = await createCommandFixture(storesInMemory());
});
afterEach(() => fixture.close());

const psk = { fingerprint: 'f', verifier: sealed };
const idempotency = { key_hash: 'k', body_hash: 'b' };

describe('a repeat', () => {
  test.each([
    ['one event', undefined],
    ['several events', psk],
  ])('is at the position where the first command ends, of %s', async (_of, of) => {
    const gateway = await fixture.gateway();
    await gateway.run(createNode('a', of === undefined ? {} : { psk: of }), { idempotency });
    const [end] = (await fixture.log()).slice(-1);
    await gateway.run(createNode('b'));
    const repeated = await gateway.run(createNode('c', { name: 'a' }), { idempotency });
    expect(repeated).toMatchObject({ kind: 'repeated', position: end?.position });
  });

  test('of events that the log no longer gives is at the newest position', async () => {
    let gone = false;
    const inner = fixture.store;
    const eventStore: EventStore = {
      ...inner,
      async *read(...range) {
        if (!gone) yield* inner.read(...range);
      },
    };
    const gateway = await fixture.gateway({ eventStore });
    await gateway.run(createNode('a', { psk }), { idempotency });
    await gateway.run(createNode('b'));
    const [newest] = (await fixture.log()).slice(-1);
    gone = true;
    const repeated = await gateway.run(createNode('c', { name: 'a' }), { idempotency });
    expect(repeated).toMatchObject({ kind: 'repeated', position: newest?.position });
  });

  test('is at the end of what is known when the log no longer gives the whole command', async () => {
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
    const [newest] = (await fixture.log()).slice(-1);
    const repeated = await gateway.run(createNode('c', { name: 'a' }), { idempotency });
    expect(repeated).toMatchObject({ kind: 'repeated', command: undefined, position: newest?.position });
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

test('the answer to a written command is never at an older position than the command before it', async () => {
  const gateway = await fixture.gateway();
  await gateway.run(createNode('a'));
  const [newest] = (await fixture.log()).slice(-1);
  fixture.store.script(async (write) => {
    const outcome = await write();
    return outcome.kind === 'appended' ? { ...outcome, position: 1 } : outcome;
  });
  expect(await gateway.run(createNode('b'))).toMatchObject({ position: newest?.position });
});

test('a command that its own events rule out is refused, and those beside it are written', async () => {
  const aggregate: typeof fleetAggregate = {
    ...fleetAggregate,
    *apply(state, command) {
      const { touched } = yield* fleetAggregate.apply(state, command);
      const { name } = command.events[0].data;
      const tooMuch = { code: 'conflict', message: 'its snapshot would be too large' } as const;
      return { touched, refusal: name === 'too much' ? tooMuch : undefined };
    },
  };
  const gateway = await fixture.gateway({}, aggregate);
  const run = (name: string) => gateway.run(createNode(name));
  const [, refused] = await Promise.allSettled([run('a'), run('too much'), run('b')]);
  expect(refused).toMatchObject({ status: 'rejected', reason: { message: 'its snapshot would be too large' } });
  expect([...gateway.fleet.tables.node.values()].map(({ name }) => name)).toEqual(['a', 'b']);
  expect((await fixture.log()).map(({ revision }) => revision)).toEqual([0, 1]);
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
  expect(looks).toBeGreaterThanOrEqual(10);
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
