/**
 * The embedded read store stores counts with its documents. Whatever is written in whatever order, through restarts and
 * while an index is being filled, pages and totals equal those of a plain filter and sort.
 */
import { join } from 'node:path';
import fc from 'fast-check';
import { open as openLmdb } from 'lmdb';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { systemClock } from '../../src/kernel/clock.js';
import { silentLogger } from '../../src/kernel/logger.js';
import { openEmbedded } from '../../src/storage/embedded/open-embedded.js';
import type { EmbeddedStores } from '../../src/storage/embedded/open-embedded.js';
import type { Collection, Fields, GuardedWrite, IndexSpec, Query } from '../../src/storage/read-store.js';
import { naiveQuery } from './contract/query-oracle.js';
import { temporaryFolder } from './contract/temporary-folder.js';

let folder: Awaited<ReturnType<typeof temporaryFolder>>;
let stores: EmbeddedStores;
const open = (): Promise<EmbeddedStores> =>
  openEmbedded({ dataDir: folder.path, clock: systemClock, logger: silentLogger });

beforeEach(async () => {
  folder = await temporaryFolder();
  stores = await open();
});
afterEach(async () => {
  await stores.close();
  await folder.remove();
});

const grouped: readonly IndexSpec[] = [
  { fields: ['flag', 'tags', 'rank'], grouped: true },
  { fields: ['flag', 'rank'], grouped: true },
  { fields: ['kind', 'rank'], grouped: true },
  { fields: ['rank'] },
  { fields: ['kind', 'flag'] },
];

const fieldsOf = fc.record(
  {
    flag: fc.boolean(),
    kind: fc.constantFrom('x', 'y', null),
    tags: fc.oneof(fc.uniqueArray(fc.constantFrom('p', 'q', 'r'), { maxLength: 3 }), fc.constant('p')),
    rank: fc.oneof(fc.integer({ min: 0, max: 3 }), fc.constantFrom('a', 'b')),
  },
  { requiredKeys: ['flag', 'rank'] },
);
const ids = ['a', 'b', 'c', 'd', 'e', 'f', 'é', 'h'] as const;
const step = fc.record({
  id: fc.constantFrom(...ids),
  kind: fc.constantFrom('put', 'put', 'put', 'delete'),
  fields: fieldsOf,
  /** Which version of the document the write claims to be computed from. */
  before: fc.constantFrom('none', 'standing', 'outdated'),
});
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;
const parts = fc.array(fc.array(step, { maxLength: 6 }), { maxLength: 5 });

/** Every combination of filters that REST lists use, sorted both ways, page by page. */
function queries(): readonly Query[] {
  const wheres: NonNullable<Query['where']>[] = [[]];
  for (const flags of [[true], [false], [false, true]]) {
    const flag = { field: 'flag', op: 'in', value: flags } as const;
    wheres.push(
      [flag],
      [flag, { field: 'rank', op: 'gte', value: 1 }],
      [flag, { field: 'rank', op: 'lt', value: 'b' }],
    );
    for (const tag of ['p', 'r']) wheres.push([flag, { field: 'tags', op: 'eq', value: tag }]);
    wheres.push([flag, { field: 'tags', op: 'in', value: ['p', 'q'] }]);
    wheres.push([flag, { field: 'kind', op: 'eq', value: 'x' }]);
  }
  for (const kind of ['x', null]) wheres.push([{ field: 'kind', op: 'eq', value: kind }]);
  return wheres.flatMap((where) =>
    (['asc', 'desc'] as const).flatMap((direction) =>
      [0, 2].map((skip): Query => ({ where, sort: [{ field: 'rank', direction }], skip, limit: 3 })),
    ),
  );
}

async function expectAgreement(collection: Collection, documents: ReadonlyMap<string, Fields>): Promise<void> {
  const all = [...documents].map(([id, fields]) => ({ id, fields }));
  for (const query of queries()) {
    const page = await collection.find(query);
    const naive = naiveQuery(all, query);
    expect({ query, ids: page.items.map(({ id }) => id), total: page.total }).toEqual({ query, ...naive });
    expect({ query, count: await collection.count(query.where) }).toEqual({ query, count: naive.total });
  }
}

/** Writes like those of projections, and the documents that they leave. */
function history(): { write(steps: readonly Step[]): GuardedWrite[]; documents: Map<string, Fields> } {
  const documents = new Map<string, Fields>();
  const seen = new Map<string, { position: number; fields: Fields }[]>();
  let position = 0;
  return {
    documents,
    write: (steps) =>
      steps.map(({ id, kind, fields, before }) => {
        position += 1;
        const earlier = (seen.get(id) ?? []).at(before === 'outdated' ? -2 : -1);
        const claim = before === 'none' || earlier === undefined ? {} : { before: { id, ...earlier } };
        if (kind === 'delete') {
          documents.delete(id);
          return { kind: 'delete', id, position, ...claim };
        }
        documents.set(id, fields as Fields);
        seen.set(id, [...(seen.get(id) ?? []), { position, fields: fields as Fields }]);
        return { kind: 'put', id, position, fields: fields as Fields, ...claim };
      }),
  };
}

/** The files of the read store, without the adapter. */
function openRaw() {
  const root = openLmdb<Buffer, Buffer>({
    path: join(folder.path, 'read'),
    noSubdir: false,
    maxDbs: 100,
    encoding: 'binary',
    keyEncoding: 'binary',
  });
  const database = (name: string) => root.openDB<Buffer, Buffer>(name, { encoding: 'binary', keyEncoding: 'binary' });
  return { root, database };
}

it('totals are right after any history of guarded writes, repeats and restarts', async () => {
  let version = 0;
  await fc.assert(
    fc.asyncProperty(parts, fc.boolean(), async (all, restart) => {
      version += 1;
      const spec = { name: 'histories', version, indexes: grouped };
      const { write, documents } = history();
      let collection = await stores.readStore.collection(spec);
      for (const part of all) {
        const writes = write(part);
        await collection.write(writes);
        if (!restart) continue;
        await stores.close();
        stores = await open();
        collection = await stores.readStore.collection(spec);
        expect(await collection.write(writes)).toBe(0);
      }
      await expectAgreement(collection, documents);
    }),
    { numRuns: 30, seed: 5 },
  );
}, 120_000);

it('totals are right after any history of unguarded writes', async () => {
  let version = 0;
  const change = fc.record({
    id: fc.constantFrom(...ids),
    kind: fc.constantFrom('set', 'insert', 'remove'),
    fields: fieldsOf,
  });
  await fc.assert(
    fc.asyncProperty(fc.array(change, { maxLength: 25 }), async (changes) => {
      version += 1;
      const collection: Collection = await stores.readStore.collection({ name: 'sets', version, indexes: grouped });
      const documents = new Map<string, Fields>();
      const done = changes.map(({ id, kind, fields: some }) => {
        const fields = some as Fields;
        switch (kind) {
          case 'set':
            documents.set(id, fields);
            return collection.set([{ id, fields }]);
          case 'insert':
            if (!documents.has(id)) documents.set(id, fields);
            return collection.insert(id, fields);
          default:
            documents.delete(id);
            return collection.remove([id]);
        }
      });
      await Promise.all(done);
      await expectAgreement(collection, documents);
    }),
    { numRuns: 30, seed: 6 },
  );
}, 120_000);

it('totals are right when indexes are declared later, whatever is written while they are filled', async () => {
  let version = 0;
  const fields = (index: number): Fields => ({
    flag: index % 3 === 0,
    kind: index % 2 === 0 ? 'x' : 'y',
    tags: ['p', 'q', 'r'].slice(index % 4),
    rank: index % 5,
  });
  for (const seed of [1, 2, 3, 4, 5, 6]) {
    version += 1;
    const name = { name: 'later', version };
    const plain: Collection = await stores.readStore.collection({ ...name, indexes: [] });
    const idOf = (index: number): string => `id-${String((index * 7919) % 1000).padStart(4, '0')}`;
    const put = (index: number, position: number): GuardedWrite => ({
      kind: 'put',
      id: idOf(index),
      position,
      fields: fields(index * position),
    });
    await plain.write(Array.from({ length: 700 }, (_, index) => put(index, 1)));
    const opening = stores.readStore.collection({ ...name, indexes: grouped });
    const writing: Promise<unknown>[] = [];
    for (let round = 2; round < 40; round += 1) {
      const written = Promise.all([
        plain.write(Array.from({ length: 10 }, (_, index) => put(index * 83 + round * seed * 17, round))),
        plain.write([{ kind: 'delete', id: idOf(round * seed), position: round }]),
      ]);
      // Awaited, the writes run between the steps of the filling; otherwise they share commits with them.
      if (seed % 2 === 0) await written;
      else {
        writing.push(written);
        if (round % 5 === 0) await new Promise((resolve) => setImmediate(resolve));
      }
    }
    await Promise.all(writing);
    const standing = await plain.find({ limit: 2000 });
    const collection: Collection = await opening;
    await expectAgreement(collection, new Map(standing.items.map((one) => [one.id, one.fields])));
    expect(standing.total).toBe(standing.items.length);
  }
}, 120_000);

it('totals are right in a collection that is indexed later, whatever is written before and meanwhile', async () => {
  let version = 0;
  await fc.assert(
    fc.asyncProperty(parts, parts, fc.boolean(), async (before, meanwhile, reopened) => {
      version += 1;
      const spec = { name: 'indexed', version, indexes: grouped };
      const { write, documents } = history();
      let filled: Collection = await stores.readStore.collection({ ...spec, indexedLater: true });
      for (const steps of before) await filled.write(write(steps));
      if (reopened) {
        // What was gathered from the writes is gone with the process.
        await stores.close();
        stores = await open();
        filled = await stores.readStore.collection({ ...spec, indexedLater: true });
      }
      const opening = stores.readStore.collection(spec);
      await Promise.all(meanwhile.map((steps) => filled.write(write(steps))));
      await expectAgreement(await opening, documents);
    }),
    { numRuns: 10, seed: 11 },
  );
}, 120_000);

it('a change of no indexed field leaves what was gathered as it is, and one of an indexed field does not', async () => {
  const spec = { name: 'changed', version: 1, indexes: grouped };
  const filled: Collection = await stores.readStore.collection({ ...spec, indexedLater: true });
  const fields = (rank: number, note: string): Fields => ({ flag: true, kind: 'x', tags: ['p'], rank, note });
  const put = (id: string, position: number, of: Fields): GuardedWrite => ({ kind: 'put', id, position, fields: of });
  await filled.write([put('a', 1, fields(1, 'first')), put('b', 1, fields(2, 'first'))]);
  await filled.write([put('a', 2, fields(1, 'second'))]);
  const documents = new Map([
    ['a', fields(1, 'second')],
    ['b', fields(2, 'first')],
  ]);
  await expectAgreement(await stores.readStore.collection(spec), documents);

  const other = { ...spec, version: 2 };
  const moved: Collection = await stores.readStore.collection({ ...other, indexedLater: true });
  await moved.write([put('a', 1, fields(1, 'first')), put('b', 1, fields(2, 'first'))]);
  await moved.write([put('a', 2, fields(3, 'second')), { kind: 'delete', id: 'b', position: 2 }]);
  await moved.write([put('c', 3, fields(0, 'third'))]);
  const then = new Map([
    ['a', fields(3, 'second')],
    ['c', fields(0, 'third')],
  ]);
  await expectAgreement(await stores.readStore.collection(other), then);
});

it('dropped collections leave no index entries, and one that takes their place finds none of them', async () => {
  const fields = { flag: true, kind: 'x', tags: ['p'], rank: 1 };
  const put = (id: string): GuardedWrite => ({ kind: 'put', id, position: 1, fields });
  const kept: Collection = await stores.readStore.collection({ name: 'kept', version: 1, indexes: grouped });
  await kept.write([put('a'), put('b')]);
  // More than there are databases at first, one after the other and a few at once.
  for (let version = 1; version <= 60; version += 1) {
    const spec = { name: 'dropped', version, indexes: grouped };
    const collection: Collection = await stores.readStore.collection(spec);
    await collection.write([put('c'), put('d')]);
    await expectAgreement(collection, new Map(['c', 'd'].map((id) => [id, fields])));
    if (version > 4) await stores.readStore.drop('dropped', version - 4);
    if (version % 20 !== 0) continue;
    await stores.close();
    stores = await open();
  }
  for (let version = 57; version <= 60; version += 1) await stores.readStore.drop('dropped', version);
  await stores.close();
  const { root, database } = openRaw();
  const names = [...root.getKeys()]
    .map((name) => String(name).replace('\0', ''))
    .filter((name) => name.startsWith('indexes.'));
  const counts = names.map((name) => database(name).getCount()).filter((count) => count > 0);
  // A database that nobody owns, as a crash may leave it.
  const prefix = Buffer.from([0, 0, 0, 62, 0, 1]);
  for (const name of names) {
    if (name === 'indexes.0' || database(name).getCount() > 0) continue;
    await database(name).put(Buffer.concat([prefix, Buffer.from('\x12stray', 'latin1')]), Buffer.from([1]));
  }
  await root.close();
  expect(names.length).toBe(33);
  expect(counts.length).toBe(1);

  stores = await open();
  await expectAgreement(
    await stores.readStore.collection({ name: 'kept', version: 1, indexes: grouped }),
    new Map(['a', 'b'].map((id) => [id, fields])),
  );
  await expectAgreement(await stores.readStore.collection({ name: 'new', version: 1, indexes: grouped }), new Map());
  await stores.close();
  const again = openRaw();
  const strays = names.filter((name) => again.database(name).getCount() === 1);
  await again.root.close();
  expect(strays.length).toBe(30);
  stores = await open();
}, 60_000);

it('more collections than there are databases of index entries are queried and dropped like any others', async () => {
  const fields = { flag: true, kind: 'x', tags: ['p'], rank: 1 };
  const spec = (version: number) => ({ name: 'many', version, indexes: grouped });
  const versions = Array.from({ length: 140 }, (_, index) => index + 1);
  const opened = await Promise.all(versions.map((version) => stores.readStore.collection(spec(version))));
  const put: GuardedWrite = { kind: 'put', id: 'a', position: 1, fields };
  await Promise.all(opened.map((collection) => (collection as Collection).write([put])));
  const last = Array.from({ length: 8 }, (_, index) => 133 + index);
  for (const version of last.slice(4)) await stores.readStore.drop('many', version);
  await stores.close();
  stores = await open();
  for (const version of last) {
    const documents = version > 136 ? [] : ([['a', fields]] as const);
    await expectAgreement(await stores.readStore.collection(spec(version)), new Map(documents));
  }
}, 60_000);
