/** The committed fleet: checkpoint and tail, when an instance is not ready, what it reports, what it never pushes. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { captureFleet, encodeFleet, restoreFleet, type FleetCapture } from '../../src/domain/fleet/checkpoint.js';
import { ServiceError } from '../../src/kernel/errors.js';
import type { EventStore, FoldCheckpoint } from '../../src/storage/event-store.js';
import {
  createBareDelivery,
  createDeliveryFixture,
  openSession,
  snapshotOf,
  turns,
  until,
  type DeliveryFixture,
} from '../support/delivery-fixture.js';
import { eventually } from '../support/eventually.js';
import { storesInMemory } from '../support/stores-in-memory.js';

let fixture: DeliveryFixture;
beforeEach(async () => {
  fixture = await createDeliveryFixture(storesInMemory());
  await fixture.log.createNode('n1');
});
afterEach(() => fixture.close());

const refresh = (id = 'n1'): Promise<number> => fixture.log.run({ type: 'RefreshNodeConfig', id });
const bytesOf = (capture: FleetCapture): Buffer => Buffer.concat([...encodeFleet(capture)]);

/** Records from where the log is read. */
function recording(store: EventStore): { readonly store: EventStore; readonly from: unknown[] } {
  const from: unknown[] = [];
  return {
    from,
    store: {
      ...store,
      subscribe(options) {
        from.push(options.after);
        return store.subscribe(options);
      },
    },
  };
}

async function checkpointed(): Promise<FoldCheckpoint> {
  const delivery = await fixture.start({ checkpointEvery: 5 });
  for (let round = 0; round < 6; round += 1) await refresh();
  await delivery.committed.passed(fixture.log.fleet.revision.value, 5000);
  const stored = (): Promise<FoldCheckpoint | undefined> => fixture.stores.eventStore.loadFoldCheckpoint('svc-fleet');
  await eventually(stored).toBeDefined();
  await delivery.close();
  return (await stored())!;
}

describe('a start from the checkpoint', () => {
  it('gives the fold of the whole log by reading only the tail', async () => {
    const stored = await checkpointed();
    await refresh();
    const recorded = recording(fixture.stores.eventStore);
    const delivery = await fixture.start({ eventStore: recorded.store });
    expect(recorded.from).toEqual([{ commit: stored.position, prepare: stored.position }]);
    const expected = restoreFleet(bytesOf(captureFleet(fixture.log.fleet)));
    expected.position.set(delivery.committed.fleet().position.value);
    expect(bytesOf(captureFleet(delivery.committed.fleet())).equals(bytesOf(captureFleet(expected)))).toBe(true);
  });

  it.each([
    [
      'with altered bytes',
      (stored: FoldCheckpoint) => ({ ...stored, bytes: Buffer.from(stored.bytes).fill(0x20, 0, 1) }),
    ],
    ['of another fold version', (stored: FoldCheckpoint) => ({ ...stored, foldVersion: stored.foldVersion + 1 })],
    ['that names another revision', (stored: FoldCheckpoint) => ({ ...stored, revision: stored.revision - 1 })],
  ])('does not use a checkpoint %s, and replays the log', async (_name, spoil) => {
    const stored = await checkpointed();
    await fixture.stores.eventStore.saveFoldCheckpoint('svc-fleet', spoil(stored));
    const recorded = recording(fixture.stores.eventStore);
    const delivery = await fixture.start({ eventStore: recorded.store });
    expect(recorded.from).toEqual(['start']);
    expect(delivery.generation('n1')).toBe(1 + fixture.log.fleet.revision.value);
  });
});

describe('while the instance catches up', () => {
  it('pushes nothing, and only the newest state afterwards', async () => {
    let held: (() => void) | undefined;
    let appended: Promise<unknown> | undefined;
    const delivery = await fixture.start({
      eventStore: {
        ...fixture.stores.eventStore,
        async *subscribe(options) {
          for await (const item of fixture.stores.eventStore.subscribe(options)) {
            if (appended !== undefined && item.kind === 'events' && held === undefined) {
              await appended;
              appended = undefined;
              throw new ServiceError('unavailable', 'dropped');
            }
            if (item.kind === 'caught_up' && options.after !== 'start') {
              await new Promise<void>((resolve) => (held = resolve));
            }
            yield item;
          }
        },
      },
    });
    const session = openSession(delivery, 'n1');
    await session.ask();
    appended = (async () => {
      for (let round = 0; round < 3; round += 1) await refresh();
    })();
    await appended;
    const newest = 1 + fixture.log.fleet.revision.value;
    await until(() => held !== undefined && delivery.generation('n1') === newest);
    await turns();
    expect(session.offers).toEqual([]);
    held?.();
    await until(() => session.offers.length > 0);
    expect(session.offers.map(({ generation }) => generation)).toEqual([newest]);
  });

  it('answers a request only after it has caught up', async () => {
    let release: (() => void) | undefined;
    const delivery = await createDelivering(() => new Promise<void>((resolve) => (release = resolve)));
    const answer = openSession(delivery, 'n1').ask();
    await until(() => release !== undefined);
    expect(delivery.state().kind).toBe('catching_up');
    release?.();
    expect(snapshotOf(await answer).generation).toBe(1 + fixture.log.fleet.revision.value);
    await delivery.close();
  });
});

/** Delivery whose log reports its end only after the promise resolves. */
function createDelivering(caughtUp: () => Promise<void>) {
  return createBareDelivery(fixture, {
    eventStore: {
      ...fixture.stores.eventStore,
      async *subscribe(options) {
        for await (const item of fixture.stores.eventStore.subscribe(options)) {
          if (item.kind === 'caught_up') await caughtUp();
          yield item;
        }
      },
    },
  });
}

describe('a revoked PSK', () => {
  const verifier = (ct: string) => ({ alg: 'xc20p' as const, key_id: 'k', nonce: 'n', ct });
  const issue = (ct: string) =>
    fixture.log.run({ type: 'IssueNodePsk', id: 'n1', fingerprint: 'SHA256:x', verifier: verifier(ct) });

  it('is reported after the new one is in place', async () => {
    const delivery = await fixture.start();
    const revocations: unknown[] = [];
    delivery.onRevoked((nodeId) => void revocations.push([nodeId, delivery.psks(nodeId)[0]?.verifier]));
    await delivery.committed.passed(await issue('one'), 5000);
    await delivery.committed.passed(await issue('two'), 5000);
    await delivery.committed.passed(await fixture.log.run({ type: 'DeleteNode', id: 'n1', ifMatch: undefined }), 5000);
    expect(revocations).toEqual([
      ['n1', verifier('one')],
      ['n1', verifier('two')],
      ['n1', undefined],
    ]);
  });

  it('is reported before a caller that waits for the command continues', async () => {
    const delivery = await fixture.start();
    const order: string[] = [];
    delivery.onRevoked(() => void order.push('revoked'));
    const revision = fixture.log.fleet.revision.value + 1;
    const waited = delivery.committed.passed(revision, 5000).then(() => order.push('answered'));
    await issue('one');
    await waited;
    expect(order).toEqual(['revoked', 'answered']);
  });
});

describe('waiting for a revision', () => {
  it('resolves false after its timeout, and on close', async () => {
    const delivery = await fixture.start();
    expect(await delivery.committed.passed(1000, 5)).toBe(false);
    const waiting = delivery.committed.passed(1000, 60_000);
    await delivery.close();
    expect(await waiting).toBe(false);
  });
});
