/** The log chain of the commands that gateways write: whole across groups, races and lost answers. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { ChainHead } from '../../src/domain/log-chain/links.js';
import { streams, type ProposedEvent } from '../../src/kernel/event.js';
import {
  bytesOf,
  createCommandFixture,
  refusalOf,
  type CommandFixture,
  type FleetGateway,
} from '../support/command-fixture.js';
import { createNode, sealed, updateNode } from '../support/fleet.js';
import { headOf, linked, testLogChain } from '../support/log-chain.js';
import { planned, proposedEvents } from '../support/read-side.js';
import { storesInMemory } from '../support/stores-in-memory.js';
import { answerLost, notWritten, unavailable } from '../support/scripted-event-store.js';

let fixture: CommandFixture;
beforeEach(async () => void (fixture = await createCommandFixture(storesInMemory())));
afterEach(() => fixture.close());

const psk = { fingerprint: 'f', verifier: sealed };
const head = (chain = testLogChain()): Promise<ChainHead> => headOf(fixture.stores.eventStore, streams.fleet, chain);

/** An instance with a log chain of its own, as another process has. */
const instance = (chain = testLogChain()): Promise<FleetGateway> => fixture.gateway({ logChain: chain });

describe('the chain', () => {
  it('links every command of a group to the one before it, with one link in its last event', async () => {
    const gateway = await instance();
    const names = Array.from({ length: 130 }, (_, index) => `n${index}`);
    await Promise.all(names.map((name) => gateway.run(createNode(name, { psk }))));
    const log = await fixture.log();
    expect(log).toHaveLength(2 * names.length);
    for (const { metadata } of log) {
      const { index, count } = metadata.command;
      expect(metadata.link !== undefined).toBe(index === count - 1);
    }
    expect((await head()).mac).toBe(log.at(-1)!.metadata.link!.mac);
    expect(bytesOf(gateway.fleet)).toBe(bytesOf(await fixture.fold()));
  });

  it('holds when two instances write at once', async () => {
    const [a, b] = [await instance(), await instance()];
    await Promise.all(Array.from({ length: 20 }, (_, index) => (index % 2 === 0 ? a : b).run(createNode(`n${index}`))));
    expect((await fixture.log()).length).toBe(20);
    await head();
  });

  it('holds when an append is refused, tried again, or its answer is lost', async () => {
    const gateway = await instance();
    await gateway.run(createNode('a'));
    const before = bytesOf(gateway.fleet);
    fixture.store.script(unavailable);
    await refusalOf(gateway.run(updateNode('a', { description: 'lost' })));
    expect(bytesOf(gateway.fleet)).toBe(before);
    fixture.store.script(notWritten, answerLost);
    await gateway.run(updateNode('a', { description: 'kept' }));
    await gateway.run(createNode('b'));
    expect((await fixture.log()).length).toBe(3);
    expect(bytesOf(gateway.fleet)).toBe(bytesOf(await fixture.fold()));
  });

  it('is not continued behind a command that breaks it', async () => {
    const chain = testLogChain();
    const gateway = await instance(chain);
    await gateway.run(createNode('a'));
    const event = proposedEvents(planned(streams.fleet, [{ type: 'NodeConfigRefreshed', data: { node_id: 'n' } }]));
    await fixture.stores.eventStore.append(streams.fleet, 0, event);
    const refusal = await refusalOf(gateway.run(createNode('b')));
    expect([refusal.code, refusal.message]).toEqual([
      'unavailable',
      expect.stringMatching(
        /^this instance is read-only: the log chain of svc-fleet breaks at revision 1, .*it carries no MAC$/,
      ),
    ]);
    expect(chain.broken()).toMatchObject({ kind: 'unlinked', stream: 'svc-fleet', revision: 1 });
    expect(await fixture.log()).toHaveLength(2);
    await expect(fixture.gateway()).rejects.toThrow(/breaks at revision 1/);
  });

  it('takes no offence at a link that a newer release wrote with an event that this one does not know', async () => {
    const chain = testLogChain();
    await (await instance(chain)).run(createNode('a'));
    const unknown = proposedEvents(planned(streams.fleet, [{ type: 'FromTheFuture', data: {} }]));
    const events: readonly ProposedEvent[] = linked(unknown, await head(), streams.fleet, chain);
    await fixture.stores.eventStore.append(streams.fleet, 0, events);
    await expect(fixture.gateway()).rejects.toThrow(/FromTheFuture .* is not known to this release/);
    expect(chain.broken()).toBeUndefined();
  });
});
