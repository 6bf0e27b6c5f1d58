/**
 * The log chain in the committed fold: a start from a checkpoint cannot be deceived by a forged one, and a change of the log
 * stops the fold in front of it.
 */
import { createHash } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { followAccounts } from '../../src/accounts/view.js';
import { createDelivery } from '../../src/delivery/delivery.js';
import type { DeliveryService } from '../../src/delivery/delivery.js';
import { compilerVersion } from '../../src/domain/compile/version.js';
import type { RecordedEvent } from '../../src/kernel/event.js';
import { streams } from '../../src/kernel/event.js';
import { silentLogger } from '../../src/kernel/logger.js';
import type { LogChain } from '../../src/log-chain/log-chain.js';
import type { EventStore, FoldCheckpoint } from '../../src/storage/event-store.js';
import { openKeyring } from '../support/accounts-fixture.js';
import { createCommandFixture } from '../support/command-fixture.js';
import type { CommandFixture, FleetGateway } from '../support/command-fixture.js';
import { until } from '../support/delivery-fixture.js';
import { createNode, nodeId, updateNode } from '../support/fleet.js';
import { testLogChain } from '../support/log-chain.js';

let fixture: CommandFixture;
let gateway: FleetGateway;
const deliveries: DeliveryService[] = [];
beforeEach(async () => {
  fixture = await createCommandFixture();
  gateway = await fixture.gateway({ logChain: testLogChain() });
  await gateway.run({ type: 'EnsureLogChain', keyId: testLogChain().keyId });
  await gateway.run({ type: 'RaiseCompilerVersion', version: compilerVersion });
  await gateway.run(createNode('n1'));
});
afterEach(async () => {
  for (const delivery of deliveries.splice(0)) await delivery.close();
  await fixture.close();
});

const revision = (): number => gateway.fleet.revision.value;
const edit = (description: string) => gateway.run(updateNode('n1', { description }));

interface Reading {
  readonly delivery: DeliveryService;
  /** From where the log was read. */
  readonly from: unknown[];
}

async function start(
  chain: LogChain = testLogChain(),
  store: EventStore = fixture.stores.eventStore,
): Promise<Reading> {
  const from: unknown[] = [];
  const delivery = await createDelivery({
    eventStore: {
      ...store,
      subscribe(options) {
        from.push(options.after);
        return store.subscribe(options);
      },
    },
    readStore: fixture.stores.readStore,
    keyring: await openKeyring(fixture),
    clock: fixture.clock,
    logger: silentLogger,
    logChain: chain,
    checkpointEvery: 5,
    raiseGeneration: () => Promise.resolve(),
    recordFact: () => Promise.resolve('recorded'),
    nodeFacts: () => Promise.resolve(undefined),
    compileEarlier: () => Promise.resolve(undefined),
  });
  deliveries.push(delivery);
  return { delivery, from };
}

const ready = (delivery: DeliveryService): Promise<void> =>
  until(() => delivery.state().kind === 'ready' && delivery.revision() === revision(), 'ready');

async function checkpointed(chain?: LogChain): Promise<FoldCheckpoint> {
  for (let round = 0; round < 6; round += 1) await edit(`round ${round}`);
  const { delivery } = await start(chain);
  await ready(delivery);
  let stored: FoldCheckpoint | undefined;
  await vi.waitFor(async () => {
    stored = await fixture.stores.eventStore.loadFoldCheckpoint(streams.fleet);
    expect(stored).toBeDefined();
  });
  await delivery.close();
  return stored!;
}

/** The store with other events in place of some, as somebody who writes its files can make it. */
function tampered(change: (event: RecordedEvent) => RecordedEvent | undefined): EventStore {
  const inner = fixture.stores.eventStore;
  const changed = (events: readonly RecordedEvent[]) => events.flatMap((event) => change(event) ?? []);
  return {
    ...inner,
    async *read(stream, options) {
      for await (const event of inner.read(stream, options)) yield* changed([event]);
    },
    async *subscribe(options) {
      for await (const item of inner.subscribe(options)) {
        const events = item.kind === 'events' ? changed(item.events) : [];
        if (item.kind !== 'events') yield item;
        else if (events.length > 0) yield { ...item, events };
      }
    },
  };
}

const altered = (at: number) => (event: RecordedEvent) =>
  event.stream === streams.fleet && event.revision === at ? { ...event, data: { ...event.data, forged: true } } : event;

describe('a start from a checkpoint', () => {
  it('reads only the tail, and checks its first link against the head of the checkpoint', async () => {
    const stored = await checkpointed();
    await edit('tail');
    const { delivery, from } = await start();
    await ready(delivery);
    expect(from).toEqual([{ commit: stored.position, prepare: stored.position }]);
    await delivery.close();

    const { delivery: deceived } = await start(testLogChain(), tampered(altered(revision())));
    await until(() => deceived.state().kind === 'broken_log');
    expect(deceived.revision()).toBe(stored.revision);
    expect(deceived.state()).toEqual({
      kind: 'broken_log',
      reason: expect.stringMatching(`^the log chain of svc-fleet breaks at revision ${revision()}, .*it was altered$`),
    });
  });

  it.each<[string, (stored: FoldCheckpoint) => Uint8Array]>([
    // Whoever writes the store can compute a SHA-256, but no seal.
    ['that was forged', ({ bytes }) => Buffer.from(Buffer.from(bytes).toString().replaceAll('round 5', 'forged!'))],
    [
      'without its seal',
      ({ bytes }) =>
        Buffer.from(
          Buffer.from(bytes)
            .toString()
            .replace(/\["seal",.*\n$/, ''),
        ),
    ],
  ])('does not use a checkpoint %s', async (_what, spoil) => {
    const stored = await checkpointed();
    const bytes = spoil(stored);
    expect(Buffer.from(bytes).equals(stored.bytes)).toBe(false);
    const sha256 = createHash('sha256').update(bytes).digest('hex');
    await fixture.stores.eventStore.saveFoldCheckpoint(streams.fleet, { ...stored, bytes, sha256 });
    const { delivery, from } = await start();
    await ready(delivery);
    expect(from).toEqual(['start']);
    expect(delivery.node(nodeId('n1'))?.description).toBe('round 5');
  });

  it('does not use a checkpoint whose last command the log does not hold', async () => {
    const stored = await checkpointed();
    const elsewhere = (event: RecordedEvent): RecordedEvent =>
      event.revision === stored.revision
        ? { ...event, metadata: { ...event.metadata, link: { after: 'x', mac: 'y' } } }
        : event;
    const { delivery, from } = await start(testLogChain(), tampered(elsewhere));
    await until(() => delivery.state().kind === 'broken_log');
    expect(from[0]).toBe('start');
    expect(delivery.revision()).toBe(stored.revision - 1);
  });
});

describe('a change of the log', () => {
  it('stops a running fold in front of it, and everything before it stays', async () => {
    await edit('before');
    const at = revision() + 1;
    const chain = testLogChain();
    const { delivery } = await start(chain, tampered(altered(at)));
    await ready(delivery);
    await edit('after');
    await until(() => delivery.state().kind === 'broken_log');
    expect(delivery.revision()).toBe(at - 1);
    expect(delivery.node(nodeId('n1'))?.description).toBe('before');
    expect(chain.broken()).toMatchObject({ kind: 'altered', stream: streams.fleet, revision: at });
  });

  it('that leaves a gap is looked for once more, and then named', async () => {
    await edit('dropped');
    const at = revision();
    await edit('after');
    const { delivery, from } = await start(
      testLogChain(),
      tampered((event) => (event.revision === at ? undefined : event)),
    );
    await until(() => delivery.state().kind === 'broken_log');
    expect(from).toEqual(['start', 'start']);
    expect(delivery.state()).toEqual({
      kind: 'broken_log',
      reason: `svc-fleet continues at ${at + 1} instead of ${at}`,
    });
  });

  it('in the accounts ends their view in front of it', async () => {
    const chain = testLogChain();
    const event = { type: 'LogChainStarted', data: { key_id: 'mk_of_nobody' } };
    const metadata = { ...(await fixture.log())[0]!.metadata };
    await fixture.stores.eventStore.append(streams.accounts, 'no_stream', [{ id: nodeId('e'), ...event, metadata }]);
    const view = followAccounts(fixture.stores.eventStore, chain, silentLogger);
    await expect(view.caughtUp()).rejects.toThrow(/log chain of svc-accounts breaks at revision 0/);
    expect(view.failure()).toMatch(/breaks at revision 0/);
    expect(view.accounts.revision.value).toBe(-1);
    await view.close();
  });
});
