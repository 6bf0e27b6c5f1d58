/**
 * The runner: resumes after its checkpoint, survives hostile stores and outages, and lets callers read their writes.
 */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { streams } from '../../src/kernel/event.js';
import { uuidFromName } from '../../src/kernel/ids.js';
import type { EventStore } from '../../src/storage/event-store.js';
import { groupName, groupVersion } from '../../src/projections/read-models.js';
import { hostileEventStore, hostileReadStore } from '../support/hostile.js';
import { eventually } from '../support/eventually.js';
import {
  append,
  dump,
  nodeCreated,
  openReadSide,
  planned,
  randomLog,
  nameOf,
  someUsers,
  userCreated,
  type ReadSide,
} from '../support/read-side.js';
import { switchedReadStore } from '../support/switched-read-store.js';

let side: ReadSide;
beforeEach(async () => {
  side = await openReadSide(undefined, { inMemory: true });
});
afterEach(() => side.close());

/** The documents that one run over the whole log makes, in another version. */
async function fullReplay(version: number) {
  const projections = await side.started({ version });
  await projections.close();
  return dump(side.stores.readStore, version);
}

const node = uuidFromName('a node');

describe('a restart', () => {
  it('continues after the checkpoint, and ends with the documents of a full replay', async () => {
    const log = randomLog(3, 60);
    const third = Math.ceil(log.length / 3);
    for (let part = 0; part < 3; part += 1) {
      await side.append(log.slice(part * third, (part + 1) * third));
      const projections = await side.started();
      await projections.close();
      expect((await side.stores.readStore.loadCheckpoint(groupName, groupVersion))?.commit).toBe(
        await side.stores.eventStore.headPosition(),
      );
    }
    expect(await dump(side.stores.readStore)).toEqual(await fullReplay(groupVersion + 1));
  });

  it('reports earlier writes as applied at once', async () => {
    await side.append([userCreated(someUsers[0]!)]);
    const { position } = await append(side.stores.eventStore, userCreated(someUsers[1]!));
    await (await side.started()).close();
    const again = await side.started();
    expect(await again.reached(position!, 0)).toBe(true);
    expect(await again.reached(position! + 1, 30)).toBe(false);
  });
});

describe('two projectors over hostile stores', () => {
  it.each([1, 2, 3])('make the documents of a replay over healthy stores (seed %i)', async (seed) => {
    const log = randomLog(seed, 60);
    const { eventStore, readStore } = side.stores;
    const both = await Promise.all(
      [seed * 10, seed * 10 + 1].map((dice) =>
        side.start({ eventStore: hostileEventStore(eventStore, dice), readStore: hostileReadStore(readStore, dice) }),
      ),
    );
    await side.append(log);
    const head = await eventStore.headPosition();
    for (const projections of both) expect(await projections.reached(head, 25_000)).toBe(true);
    await Promise.all(both.map((projections) => projections.close()));
    expect(await dump(readStore)).toEqual(await fullReplay(groupVersion + 1));
  });
});

describe('an outage of the read store', () => {
  it('ends when the last event that was written during it is applied, not the first', async () => {
    const log = randomLog(6, 40);
    const readStore = switchedReadStore(side.stores.readStore);
    const inner = side.stores.eventStore;
    const eventStore: EventStore = {
      ...inner,
      async *subscribe(options) {
        for await (const item of inner.subscribe(options)) {
          if (item.kind !== 'events') yield item;
          else for (const event of item.events) yield { kind: 'events', events: [event] };
        }
      },
    };
    const projections = await side.started({ readStore, eventStore });
    readStore.mode = 'out';
    await side.append(log);
    const head = await inner.headPosition();
    await eventually(() => projections.status().caughtUp).toBe(false);
    const caughtUpAt: number[] = [];
    projections.onStatusChange(({ caughtUp, position }) => void (caughtUp && caughtUpAt.push(position)));
    readStore.mode = 'works';
    await eventually(() => projections.status().caughtUp).toBe(true);
    expect(Math.min(...caughtUpAt)).toBeGreaterThanOrEqual(head);
    await projections.close();
  });

  it('keeps the checkpoint at the documents when the runner is closed during it', async () => {
    const log = randomLog(6, 40);
    const readStore = switchedReadStore(side.stores.readStore);
    await side.append(log.slice(0, 10));
    const projections = await side.started({ readStore });
    const before = await side.stores.readStore.loadCheckpoint(groupName, groupVersion);
    readStore.mode = 'no_documents';
    await side.append(log.slice(10));
    await eventually(() => readStore.refused()).toBeGreaterThan(0);
    await projections.close();
    expect(await side.stores.readStore.loadCheckpoint(groupName, groupVersion)).toEqual(before);
    await (await side.started()).close();
    expect(await dump(side.stores.readStore)).toEqual(await fullReplay(groupVersion + 1));
  });
});

describe('reading your own writes', () => {
  it('waits for the whole command', async () => {
    const projections = await side.started();
    const created = planned(streams.fleet, [
      ...nodeCreated(node).events,
      {
        type: 'NodePskIssued',
        data: { node_id: node, fingerprint: 'f', verifier: { alg: 'xc20p', key_id: 'k', nonce: '', ct: '' } },
      },
    ]);
    const waiting = projections.reached((await side.stores.eventStore.headPosition()) + 2, 10_000);
    const { revision, position } = await append(side.stores.eventStore, created);
    expect(revision).toBe(1);
    expect(await waiting).toBe(true);
    expect(await nameOf(projections, node)).not.toBeNull();
    expect(await projections.reached(position!, 0)).toBe(true);
  });
});
