/** The log chain of the commands that gateways write: begun once, whole across groups, races and lost answers. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { emptyChain } from '../../src/domain/log-chain/links.js';
import type { ChainHead } from '../../src/domain/log-chain/links.js';
import type { ProposedEvent } from '../../src/kernel/event.js';
import { streams } from '../../src/kernel/event.js';
import { createLogChain } from '../../src/security/log-chain/log-chain.js';
import type { LogChain } from '../../src/security/log-chain/log-chain.js';
import type { CommandFixture, FleetGateway } from '../support/command-fixture.js';
import { bytesOf, createCommandFixture, refusalOf } from '../support/command-fixture.js';
import { createNode, sealed, updateNode } from '../support/fleet.js';
import { headOf, linked, rotatedKeys, testLogChain } from '../support/log-chain.js';
import { planned, proposedEvents } from '../support/read-side.js';
import { storesInMemory } from '../support/stores-in-memory.js';
import { answerLost, notWritten, unavailable } from '../support/scripted-event-store.js';

let fixture: CommandFixture;
beforeEach(async () => void (fixture = await createCommandFixture(storesInMemory())));
afterEach(() => fixture.close());

const begin = (chain: LogChain) => ({ type: 'EnsureLogChain', keyId: chain.keyId }) as const;
const psk = { fingerprint: 'f', verifier: sealed };
const head = (chain = testLogChain()): Promise<ChainHead> => headOf(fixture.stores.eventStore, streams.fleet, chain);

/** An instance with a log chain of its own, as another process has. */
async function instance(chain = testLogChain()): Promise<FleetGateway> {
  const gateway = await fixture.gateway({ logChain: chain });
  await gateway.run(begin(chain));
  return gateway;
}

describe('the first event of a chain', () => {
  it('is written once, by whichever of two instances is first', async () => {
    const [a, b] = [
      await fixture.gateway({ logChain: testLogChain() }),
      await fixture.gateway({ logChain: testLogChain() }),
    ];
    await Promise.all([a, b].map((gateway) => gateway.run(begin(testLogChain()))));
    await Promise.all([a.run(createNode('a')), b.run(createNode('b'))]);
    await a.run(begin(testLogChain()));
    expect((await fixture.log()).map(({ type }) => type)).toEqual(['LogChainStarted', 'NodeCreated', 'NodeCreated']);
    await head();
  });

  it('leaves what was written before as it is, and covers it', async () => {
    const before = await fixture.gateway();
    await before.run(createNode('old'));
    const [old] = await fixture.log();
    expect(old?.metadata.link).toBeUndefined();
    await (await instance()).run(createNode('new'));
    const log = await fixture.log();
    expect(log[0]).toEqual(old);
    expect(log.map(({ metadata }) => metadata.link !== undefined)).toEqual([false, true, true]);
    const chain = testLogChain();
    const altered = { ...old!, data: { ...old!.data, name: 'older' } };
    const after = chain.follow(emptyChain, { stream: streams.fleet, events: [altered] });
    expect(() => chain.follow(after, { stream: streams.fleet, events: [log[1]!] })).toThrow(
      /breaks at revision 1.*one was dropped, inserted or moved/,
    );
  });
});

describe('the chain', () => {
  it('links every command of a group to the one before it, with one link in its last event', async () => {
    const gateway = await instance();
    const names = Array.from({ length: 130 }, (_, index) => `n${index}`);
    await Promise.all(names.map((name) => gateway.run(createNode(name, { psk }))));
    const log = await fixture.log();
    expect(log).toHaveLength(1 + 2 * names.length);
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
    expect((await fixture.log()).length).toBe(21);
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
    expect((await fixture.log()).length).toBe(4);
    expect(bytesOf(gateway.fleet)).toBe(bytesOf(await fixture.fold()));
  });

  it('goes over to a new key at the first start after a rotation, and the old key adds nothing any more', async () => {
    const old = await instance();
    await old.run(createNode('a'));
    const rotated = createLogChain(rotatedKeys());
    await (await instance(rotated)).run(createNode('b'));
    expect((await fixture.log()).map(({ type }) => type)).toEqual([
      'LogChainStarted',
      'NodeCreated',
      'LogChainKeyChanged',
      'NodeCreated',
    ]);
    await head(createLogChain(rotatedKeys()));
    await expect(head()).rejects.toThrow(/breaks at revision 3.*key of another master key/);
    expect((await refusalOf(old.run(createNode('c')))).message).toMatch(
      /read-only: the log chain .* breaks at revision 3/,
    );
  });

  it('is not continued behind a command that breaks it', async () => {
    const chain = testLogChain();
    const gateway = await instance(chain);
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
    await instance(chain);
    const unknown = proposedEvents(planned(streams.fleet, [{ type: 'FromTheFuture', data: {} }]));
    const events: readonly ProposedEvent[] = linked(unknown, await head(), streams.fleet, chain);
    await fixture.stores.eventStore.append(streams.fleet, 0, events);
    await expect(fixture.gateway()).rejects.toThrow(/FromTheFuture .* is not known to this release/);
    expect(chain.broken()).toBeUndefined();
  });
});
