/**
 * Rebuilt read models of this release, on real stores: they hold what the log says, replace the old ones at once, and survive an
 * interrupted run. What a rebuild does in each case is in `test/projections/rebuilding.test.ts`.
 */
import { randomUUID } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { silentLogger } from '../../src/kernel/logger.js';
import { placeOf, readLayoutRecord } from '../../src/projections/engine/layout.js';
import { groupName, groupVersion, openCollections, readModels } from '../../src/projections/read-models.js';
import { rebuildReadModels, type RebuildOptions } from '../../src/projections/rebuild/rebuild.js';
import { tuning } from '../../src/projections/tuning.js';
import type { ReadStore } from '../../src/storage/read-store.js';
import {
  append,
  dump,
  nameOf,
  nodeCreated,
  nodeRenamed,
  openReadSide,
  randomLog,
  signedIn,
  type Dump,
  type Planned,
  type ReadSide,
} from '../support/read-side.js';

let side: ReadSide;
beforeEach(async () => {
  side = await openReadSide();
});
afterEach(() => side.close());

const rebuild = (more: Partial<RebuildOptions> = {}) => {
  const { eventStore, readStore } = side.stores;
  const signal = new AbortController().signal;
  return rebuildReadModels({
    eventStore,
    readStore,
    logger: silentLogger,
    signal,
    onProgress: () => undefined,
    readersMs: 0,
    ...more,
  });
};

/** Every document that is read, at the place that the layout names. */
async function documents(): Promise<Dump> {
  const { readStore } = side.stores;
  const { layout } = await readLayoutRecord(readStore, groupVersion);
  const all: Record<string, Dump[string]> = {};
  for (const model of readModels) {
    const version = layout.places.get(model.name) ?? groupVersion;
    Object.assign(all, await dump(readStore, version, [model]));
  }
  return all;
}

/** Writes a random log and fills the read models from it; nothing follows the log afterwards. */
async function projected(seed: number): Promise<Dump> {
  await side.append(randomLog(seed));
  await (await side.started()).close();
  return documents();
}

async function spoil(model: string, version = groupVersion): Promise<void> {
  const collections = await openCollections(side.stores.readStore, readModels, version);
  const collection = collections.get(model)!;
  const items = await collection.list(undefined, 1);
  expect(items, 'the random log has to leave a document of this model; otherwise choose another seed').toHaveLength(1);
  await collection.write([{ id: items[0]!.id, position: 2 ** 40, fields: { spoilt: true } }]);
}

describe('a rebuild', () => {
  it('ends with the same documents, and leaves none of the old ones', async () => {
    const before = await projected(1);
    const outcome = await rebuild();
    expect(outcome).toMatchObject({ kind: 'done', resumed: false, dropped: true });
    expect(await documents()).toEqual(before);
    const { readStore } = side.stores;
    const record = await readLayoutRecord(readStore, groupVersion);
    expect(record).toMatchObject({ layout: { number: 1 }, filling: undefined, leftovers: [] });
    expect(Object.values(await dump(readStore, groupVersion)).flat()).toEqual([]);
    expect(await readStore.loadCheckpoint(groupName, groupVersion)).toBeUndefined();
    // A second rebuild does the same.
    await rebuild();
    expect(await documents()).toEqual(before);
    expect((await readLayoutRecord(readStore, groupVersion)).layout.number).toBe(2);
    expect(Object.values(await dump(readStore, placeOf(groupVersion, 1))).flat()).toEqual([]);
  });

  it('that is interrupted continues where it stopped; the old documents are read meanwhile', async () => {
    await side.append(randomLog(6));
    const many = Array.from({ length: 100 }, () => signedIn(null));
    for (let batch = 0; batch < 3 * (tuning.batchEvents / 100) + 1; batch += 1) await appendAgain(many);
    await (await side.started()).close();
    const before = await documents();
    await spoil('resource_names');
    const spoilt = await documents();
    const stop = new AbortController();
    const first = await rebuild({
      readStore: stopping(side.stores.readStore, stop),
      signal: stop.signal,
    });
    expect(first.kind).toBe('interrupted');
    expect(first.events).toBeGreaterThan(0);
    expect(await documents()).toEqual(spoilt);
    expect((await readLayoutRecord(side.stores.readStore, groupVersion)).filling).toEqual({ number: 1, only: null });

    const second = await rebuild();
    expect(second).toMatchObject({ kind: 'done', resumed: true });
    const total = await side.stores.eventStore.headPosition();
    expect(second.events).toBeLessThan(total);
    expect(first.events + second.events).toBeGreaterThanOrEqual(total);
    expect(await documents()).toEqual(before);
  });
});

describe('a service that runs during a rebuild', () => {
  it('reads the old documents, then the new ones, without a gap', async () => {
    await side.append(randomLog(10));
    const before = { ...tuning };
    onTestFinished(() => void Object.assign(tuning, before));
    // A rebuild waits for two turns of an instance that is just starting.
    Object.assign(tuning, { layoutPollMs: 50 });
    const projections = await side.started();
    const { eventStore, readStore } = side.stores;
    const node = '22222222-2222-4222-8222-222222222222';
    await side.append([nodeCreated(node, 'always there')]);
    await projections.reached(await eventStore.headPosition(), 10_000);

    let rebuilding = true;
    const traffic = (async () => {
      for (let round = 0; rebuilding || round < 20; round += 1) {
        await side.append([nodeRenamed(node, `name ${round}`)]);
        expect(await projections.reached(await eventStore.headPosition(), 10_000)).toBe(true);
        expect(await nameOf(projections, node)).toBe(`name ${round}`);
      }
    })();
    const outcome = await rebuild({ readersMs: 20_000 }).finally(() => {
      rebuilding = false;
    });
    await traffic;
    expect(outcome).toMatchObject({ kind: 'done', dropped: true });
    expect(Object.values(await dump(readStore, groupVersion)).flat()).toEqual([]);
    expect(await documents()).toEqual(await freshFold());
    expect(projections.status()).toMatchObject({ caughtUp: true, lastError: null });
  });
});

/** Appends commands once more, as new ones. */
async function appendAgain(log: readonly Planned[]): Promise<void> {
  const [first, ...more] = log.map((one) => ({ ...one, id: randomUUID() }));
  if (first !== undefined) await append(side.stores.eventStore, first, ...more);
}

/** Aborts with the second batch of the audit, in the middle of a fold, however many read models there are. */
function stopping(readStore: ReadStore, stop: AbortController): ReadStore {
  let batches = 0;
  return {
    ...readStore,
    async collection(spec: Parameters<ReadStore['collection']>[0]) {
      const collection = await readStore.collection(spec);
      return {
        ...collection,
        async write(writes: Parameters<typeof collection.write>[0]) {
          const applied = await collection.write(writes);
          if (spec.name === 'audit') batches += 1;
          if (batches === 2) stop.abort();
          return applied;
        },
      };
    },
  } as ReadStore;
}

/** The documents of projections that start from an empty read store. */
async function freshFold(): Promise<Dump> {
  const other = await openReadSide();
  try {
    const { readStore } = other.stores;
    const projections = await side.started({ readStore });
    await projections.reached(await side.stores.eventStore.headPosition(), 10_000);
    await projections.close();
    return await dump(readStore);
  } finally {
    await other.close();
  }
}
