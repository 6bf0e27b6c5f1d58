import { randomUUID } from 'node:crypto';
import fc from 'fast-check';
import { MongoClient, type Collection as MongoCollection } from 'mongodb';
import { afterEach, beforeEach, expect, it } from 'vitest';
import type { Collection, CollectionSpec, ReadStore, StoredDocument } from '../../../src/storage/read-store.js';
import type { MongoDocument } from '../../../src/storage/mongodb/document-codec.js';
import { applyGuarded } from '../../../src/storage/mongodb/guarded-writes.js';
import { mongoDatabase, onMongoServers, withDatabase, type MongoDatabase } from '../contract/mongodb-harness.js';
import { leaseOf } from '../../support/lease-of.js';

const spec: CollectionSpec = { name: 'shared', version: 1, index: { group: 'owner', order: 'at' } };
/** The collection; once its first search is answered, `then` runs before the caller goes on. */
function afterFirstLook<T extends object>(
  collection: MongoCollection<T>,
  then: () => Promise<unknown>,
): MongoCollection<T> {
  let looked = false;
  const find = (...[filter, options]: Parameters<typeof collection.find>) => {
    const cursor = collection.find(filter, options);
    const toArray = async () => {
      const found = await cursor.toArray();
      if (!looked) await then();
      looked = true;
      return found;
    };
    return { toArray };
  };
  return new Proxy(collection, {
    get(target, name) {
      if (name === 'find') return find;
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
}

const put = (id: string, position: number): StoredDocument => ({ id, position, fields: { n: position } });

onMongoServers('several instances on one MongoDB', (server) => {
  let database: MongoDatabase;
  let one: ReadStore;
  let two: ReadStore;
  let first: Collection;
  let second: Collection;
  beforeEach(async () => {
    database = mongoDatabase(await server());
    [one, two] = await Promise.all([database.open(), database.open()]);
    [first, second] = await Promise.all([one.collection(spec), two.collection(spec)]);
  });
  afterEach(() => database.close());

  it('write the same new documents at once, and the highest position wins', async () => {
    for (let round = 0; round < 8; round += 1) {
      const ids = ['a', 'b', 'c'].map((name) => `${name}${round}`);
      const [low, high] = round % 2 === 0 ? [first, second] : [second, first];
      await Promise.all([low.write(ids.map((id) => put(id, 1))), high.write(ids.map((id) => put(id, 2)))]);
      expect((await first.getMany(ids)).map(({ position, fields }) => [position, fields['n']])).toEqual(
        ids.map(() => [2, 2]),
      );
    }
  });

  it('fold the same log at different paces into the same documents', async () => {
    const idOf = fc.constantFrom('a', 'b', 'c', 'd');
    let run = 0;
    await fc.assert(
      fc.asyncProperty(
        fc.array(idOf, { minLength: 1, maxLength: 30 }),
        fc.integer({ min: 1, max: 7 }),
        async (log, pace) => {
          run += 1;
          const name = (id: string): string => `${id}-${run}`;
          const writes = log.map((id, at) => put(name(id), at + 1));
          const fold = async (collection: Collection, size: number): Promise<void> => {
            for (let at = 0; at < writes.length; at += size) await collection.write(writes.slice(at, at + size));
          };
          await Promise.all([fold(first, pace), fold(second, 3), fold(second, 1)]);
          for (const id of ['a', 'b', 'c', 'd']) {
            const last = writes.findLast((entry) => entry.id === name(id));
            expect((await first.get(name(id)))?.position).toBe(last?.position);
          }
        },
      ),
      { numRuns: 10, seed: 5 },
    );
  });

  it('let a higher write win that comes between the look and the change of a lower one', async () => {
    const client = new MongoClient(withDatabase(await server(), 'svc_test_overtaken'));
    const collection = client.db().collection<MongoDocument>(`c${randomUUID()}`);
    try {
      for (const [before, between] of [
        [1, 9],
        [undefined, 9],
        [undefined, 3],
      ] as const) {
        const id = `of ${before} and ${between}`;
        if (before !== undefined) await applyGuarded(collection, undefined, [put(id, before)]);
        const looked = afterFirstLook(collection, () => applyGuarded(collection, undefined, [put(id, between)]));
        await applyGuarded(looked, undefined, [put(id, 5)]);
        expect(await collection.findOne({ _id: id })).toMatchObject({ position: Math.max(between, 5) });
      }
      await collection.drop();
    } finally {
      await client.close();
    }
  });

  it('give a lease and a new document to exactly one of them', async () => {
    const claim = (name: string, holder: string) => ({ name, holder, ttlMs: 60_000, data: { holder } });
    for (let round = 0; round < 8; round += 1) {
      const name = `n${round}`;
      const [firstHolds, secondHolds] = await Promise.all([
        one.leases.acquire('k', claim(name, 'one')),
        two.leases.acquire('k', claim(name, 'two')),
      ]);
      expect([firstHolds, secondHolds].filter(Boolean)).toHaveLength(1);
      expect((await leaseOf(one.leases, 'k', name))?.holder).toBe(firstHolds ? 'one' : 'two');

      const inserted = await Promise.all([
        first.insert([{ id: name, fields: { owner: 'one', at: '1' } }]),
        second.insert([{ id: name, fields: { owner: 'two', at: '1' } }]),
      ]);
      expect(inserted.flat()).toEqual([name]);
      expect((await first.get(name))?.fields['owner']).toBe(inserted[0]?.length === 1 ? 'one' : 'two');
    }
  });

  it('take a lease from each other during a renewal: one holds it, and the other learns that it does not', async () => {
    const claim = (holder: string, at: number) => ({ name: 'node', holder, ttlMs: 60_000, data: { at } });
    for (let round = 0; round < 8; round += 1) {
      await one.leases.take('k', claim('one', 0));
      await Promise.all([one.leases.renew('k', [claim('one', round)]), two.leases.take('k', claim('two', round))]);
      expect((await leaseOf(one.leases, 'k', 'node'))?.holder).toBe('two');
      expect(await one.leases.renew('k', [claim('one', 99)])).toEqual(['node']);
      expect(await leaseOf(two.leases, 'k', 'node')).toMatchObject({ holder: 'two', data: { at: round } });
    }
  });

  it('renew more leases than a batch has of many holders without confusing them', async () => {
    const claims = Array.from({ length: 1100 }, (_, n) => ({ name: `n${n}`, holder: `h${n}`, ttlMs: 60_000, data: 1 }));
    // A name with another lease's holder, which does not exist.
    const strangers = claims.slice(0, 10).map((claim, n) => ({ ...claim, holder: `h${n + 1}` }));
    for (const claim of claims.slice(0, 80)) await one.leases.take('k', claim);
    const lost = await two.leases.renew('k', [...claims, ...strangers]);
    expect(lost).toHaveLength(1020 + 10);
    expect(lost.slice(-10)).toEqual(strangers.map(({ name }) => name));
    expect(await one.leases.list('k')).toHaveLength(80);
  });

  it('save checkpoints at once, and the highest wins', async () => {
    for (let round = 0; round < 8; round += 1) {
      const at = (commit: number, prepare: number) => ({ commit, prepare, anchors: [] });
      await Promise.all([
        one.saveCheckpoint(`p${round}`, 1, at(5, 5)),
        two.saveCheckpoint(`p${round}`, 1, at(6, 1)),
        one.saveCheckpoint(`p${round}`, 1, at(5, 9)),
      ]);
      expect(await two.loadCheckpoint(`p${round}`, 1)).toEqual(at(6, 1));
    }
  });
});
