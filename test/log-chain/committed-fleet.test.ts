/**
 * The log chain in the committed fleet: a start from a checkpoint cannot be deceived by a forged one, and a change of the log
 * stops the fold in front of it.
 */
import { createHash } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { compilerVersion } from '../../src/kernel/release.js';
import { streams, type RecordedEvent, type StoredEvent } from '../../src/kernel/event.js';
import { silentLogger } from '../../src/kernel/logger.js';
import type { LogChain } from '../../src/security/log-chain/log-chain.js';
import { openAccounts } from '../../src/projections/accounts.js';
import { openCommittedFleet, type CommittedFleet } from '../../src/projections/fleet/committed-fleet.js';
import { followInMemory, type LogFollower } from '../../src/projections/log-follower.js';
import { ownEvent } from '../../src/storage/broken-log.js';
import type { EventStore, FoldCheckpoint } from '../../src/storage/event-store.js';
import { createCommandFixture, type CommandFixture, type FleetGateway } from '../support/command-fixture.js';
import { until } from '../support/delivery-fixture.js';
import { createNode, nodeId, updateNode } from '../support/fleet.js';
import { testLogChain } from '../support/log-chain.js';
import { eventually } from '../support/eventually.js';

let fixture: CommandFixture;
let gateway: FleetGateway;
const opened: (CommittedFleet | LogFollower)[] = [];
beforeEach(async () => {
  fixture = await createCommandFixture();
  gateway = await fixture.gateway({ logChain: testLogChain() });
  await gateway.run({ type: 'RaiseCompilerVersion', version: compilerVersion });
  await gateway.run(createNode('n1'));
});
afterEach(async () => {
  for (const committed of opened.splice(0)) await committed.close();
  await fixture.close();
});

const revision = (): number => gateway.fleet.revision.value;
const edit = (description: string) => gateway.run(updateNode('n1', { description }));

interface Reading {
  readonly committed: CommittedFleet;
  /** From where the log was read. */
  readonly from: unknown[];
}

async function start(
  chain: LogChain = testLogChain(),
  store: EventStore = fixture.stores.eventStore,
): Promise<Reading> {
  const from: unknown[] = [];
  const eventStore: EventStore = {
    ...store,
    subscribe(options) {
      from.push(options.after);
      return store.subscribe(options);
    },
  };
  const logger = silentLogger;
  const committed = await openCommittedFleet({ eventStore, logger, logChain: chain });
  opened.push(followInMemory({ eventStore, logger, folds: [committed], checkpointEvery: 5 }), committed);
  return { committed, from };
}

const revisionOf = (committed: CommittedFleet): number => committed.fleet().revision.value;
const ready = (committed: CommittedFleet): Promise<void> =>
  until(() => committed.state().kind === 'ready' && revisionOf(committed) === revision(), 'ready');

async function checkpointed(chain?: LogChain): Promise<FoldCheckpoint> {
  for (let round = 0; round < 6; round += 1) await edit(`round ${round}`);
  const { committed } = await start(chain);
  await ready(committed);
  let stored: FoldCheckpoint | undefined;
  await eventually(
    async () => (stored = await fixture.stores.eventStore.loadFoldCheckpoint(streams.fleet)),
  ).toBeDefined();
  await committed.close();
  return stored!;
}

/** The store with other events in place of some, as somebody who writes its files can make it. */
function tampered(change: (event: RecordedEvent) => RecordedEvent | undefined): EventStore {
  const inner = fixture.stores.eventStore;
  const changed = (events: readonly StoredEvent[]) => events.flatMap((event) => change(ownEvent(event)) ?? []);
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
    const { committed, from } = await start();
    await ready(committed);
    expect(from).toEqual([{ commit: stored.position, prepare: stored.position }]);
    await committed.close();

    const { committed: deceived } = await start(testLogChain(), tampered(altered(revision())));
    await until(() => deceived.state().kind === 'broken_log');
    expect(revisionOf(deceived)).toBe(stored.revision);
    expect(deceived.state()).toEqual({
      kind: 'broken_log',
      reason: expect.stringMatching(
        `^the log chain of svc-fleet breaks at revision ${revision()}, .*it was altered, or another installation wrote it$`,
      ),
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
    const { committed, from } = await start();
    await ready(committed);
    expect(from).toEqual(['start']);
    expect(committed.fleet().tables.node.get(nodeId('n1'))?.description).toBe('round 5');
  });

  it('does not use a checkpoint whose last command the log does not hold', async () => {
    const stored = await checkpointed();
    const elsewhere = (event: RecordedEvent): RecordedEvent =>
      event.revision === stored.revision
        ? { ...event, metadata: { ...event.metadata, link: { after: 'x', mac: 'y' } } }
        : event;
    const { committed, from } = await start(testLogChain(), tampered(elsewhere));
    await until(() => committed.state().kind === 'broken_log');
    expect(from[0]).toBe('start');
    expect(revisionOf(committed)).toBe(stored.revision - 1);
  });
});

describe('a change of the log', () => {
  it('stops a running fold in front of it, and everything before it stays', async () => {
    await edit('before');
    const at = revision() + 1;
    const chain = testLogChain();
    const { committed } = await start(chain, tampered(altered(at)));
    await ready(committed);
    await edit('after');
    await until(() => committed.state().kind === 'broken_log');
    expect(revisionOf(committed)).toBe(at - 1);
    expect(committed.fleet().tables.node.get(nodeId('n1'))?.description).toBe('before');
    expect(chain.broken()).toMatchObject({ kind: 'altered', stream: streams.fleet, revision: at });
  });

  it('that leaves a gap is looked for once more, and then named', async () => {
    await edit('dropped');
    const at = revision();
    await edit('after');
    const { committed, from } = await start(
      testLogChain(),
      tampered((event) => (event.revision === at ? undefined : event)),
    );
    await until(() => committed.state().kind === 'broken_log');
    const { position } = (await fixture.log()).find((event) => event.revision === at - 1)!;
    expect(from).toEqual(['start', { commit: position, prepare: position }]);
    expect(committed.state()).toEqual({
      kind: 'broken_log',
      reason: `svc-fleet continues at ${at + 1} instead of ${at}`,
    });
  });

  it('in the accounts ends their view in front of it', async () => {
    const chain = testLogChain();
    const event = { type: 'LogChainStarted', data: { key_id: 'mk_of_nobody' } };
    const metadata = { ...(await fixture.log())[0]!.metadata };
    await fixture.stores.eventStore.append(streams.accounts, 'no_stream', [{ id: nodeId('e'), ...event, metadata }]);
    const { eventStore } = fixture.stores;
    const view = openAccounts(eventStore, chain, silentLogger);
    opened.push(followInMemory({ eventStore, logger: silentLogger, folds: [view] }));
    await until(() => view.failure() !== undefined, 'the accounts stop');
    expect(view.failure()).toMatch(/log chain of svc-accounts breaks at revision 0/);
    expect([view.caughtUp(), view.accounts.revision.value]).toEqual([false, -1]);
  });
});
