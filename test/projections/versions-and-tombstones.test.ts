/**
 * A raised version is filled beside the current one and takes over once it has caught up; old tombstones are removed.
 */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { streams } from '../../src/kernel/event.js';
import { uuidFromName } from '../../src/kernel/ids.js';
import type { ReadModel } from '../../src/projections/read-model.js';
import { groupName, groupVersion, openCollections, readModels } from '../../src/projections/read-models.js';
import { createPurge } from '../../src/projections/engine/removals.js';
import { append, dump, nameOf, nodeRenamed, openReadSide, planned, randomLog } from '../support/read-side.js';
import type { Planned, ReadSide } from '../support/read-side.js';

let side: ReadSide;
beforeEach(async () => {
  side = await openReadSide(undefined, { inMemory: true });
});
afterEach(() => side.close());

const node = uuidFromName('a node');
const fields = { node_id: node, name: 'one', description: null, address: null, labels: {} };
const created = (): Planned => planned(streams.fleet, [{ type: 'NodeCreated', data: fields }]);
const deleted = (): Planned =>
  planned(streams.fleet, [{ type: 'NodeDeleted', data: { ...fields, override: null, policies: [] } }]);

describe('a raised version', () => {
  it('is filled beside the current one, gets the pointer once it has caught up, and keeps it', async () => {
    const { readStore } = side.stores;
    await side.append(randomLog(4));
    expect(await readStore.activeVersion(groupName)).toBeUndefined();
    const old = await side.started();
    expect(await readStore.activeVersion(groupName)).toBe(groupVersion);
    const before = await dump(readStore);

    let release: () => void = () => undefined;
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    const slow = {
      ...readStore,
      async collection(spec: Parameters<typeof readStore.collection>[0]) {
        const collection = await readStore.collection(spec);
        return {
          ...collection,
          async write(writes: Parameters<typeof collection.write>[0]) {
            await held;
            return collection.write(writes);
          },
        };
      },
    } as typeof readStore;
    const next = await side.start({ version: groupVersion + 1, readStore: slow });
    await expect(nameOf(next, node)).rejects.toMatchObject({ code: 'unavailable' });
    expect(await readStore.activeVersion(groupName)).toBe(groupVersion);
    release();
    await expect.poll(() => next.status().caughtUp, { timeout: 20_000 }).toBe(true);
    expect(await readStore.activeVersion(groupName)).toBe(groupVersion + 1);
    expect(await dump(readStore, groupVersion + 1)).toEqual(before);

    // The older release still reads its own version, after a restart too, and does not take the pointer back.
    await side.append([created(), nodeRenamed(node, 'one')]);
    expect(await old.reached(await side.stores.eventStore.headPosition(), 10_000)).toBe(true);
    expect(await nameOf(old, node)).toBe('one');
    await old.close();
    const oldAgain = await side.started();
    expect(await nameOf(oldAgain, node)).toBe('one');
    expect(await readStore.activeVersion(groupName)).toBe(groupVersion + 1);
  });
});

/** A read model whose documents are deleted: one for each node that exists. */
const lives: ReadModel = {
  name: 'lives',
  keys: ({ type, data }) => (type === 'NodeCreated' || type === 'NodeDeleted' ? [String(data['node_id'])] : []),
  evolve: (_fields, { type }) => (type === 'NodeDeleted' ? undefined : {}),
};

describe('tombstones', () => {
  /** A deleted node, and whether its tombstone is still there. */
  async function buried() {
    const { readStore, eventStore } = side.stores;
    await side.append([created()]);
    const { position } = await append(eventStore, deleted());
    await (await side.started({ models: [...readModels, lives] })).close();
    const collections = await openCollections(readStore, [lives], groupVersion);
    const collection = collections.get(lives.name)!;
    return {
      position: position!,
      // A write at the tombstone's own position is applied only if the tombstone is gone.
      isThere: async (): Promise<boolean> =>
        (await collection.write([{ kind: 'put', id: node, position: position!, fields: {} }])) === 0,
      /** Each turn is a day after the one before. */
      purge: (checkpoint: () => Promise<number | undefined>) => {
        let days = 0;
        const deletionTime = (): number => (days += 1) * 24 * 3_600_000;
        return createPurge({ readStore, checkpoint, deletionTime, collections: () => collections.values() });
      },
      live: (name: string, data: { position: number } | null) =>
        readStore.leases.take('instances', { name, holder: name, ttlMs: 60_000, data }),
    };
  }

  it('are removed a day after every live instance has passed them', async () => {
    const { position, isThere, purge: purging, live } = await buried();
    const purge = purging(async () => (await side.stores.readStore.loadCheckpoint(groupName, groupVersion))?.commit);

    // No instance is known; one has no position; one is behind the tombstone.
    for (const prepare of [
      async () => undefined,
      () => live('a', null),
      () => live('a', { position: position + 5 }).then(() => live('b', { position: position - 1 })),
    ]) {
      await prepare();
      expect([await purge(), await purge()]).toEqual([0, 0]);
      expect(await isThere()).toBe(true);
    }
    await live('b', { position });
    expect(await purge()).toBe(0);
    expect(await purge()).toBe(1);
    expect(await isThere()).toBe(false);
    expect(readModels.length).toBeGreaterThan(1);
  });

  it('stay while the checkpoint, where a restart begins, is behind them or missing', async () => {
    const { position, isThere, purge: purging, live } = await buried();
    let checkpoint: number | undefined;
    const purge = purging(async () => checkpoint);
    await live('a', { position: position + 5 });
    expect([await purge(), await purge()]).toEqual([0, 0]);
    checkpoint = position - 1;
    expect([await purge(), await purge()]).toEqual([0, 0]);
    expect(await isThere()).toBe(true);
    checkpoint = position;
    expect([await purge(), await purge()]).toEqual([0, 1]);
    expect(await isThere()).toBe(false);
  });
});
