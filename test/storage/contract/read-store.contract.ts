/**
 * What every read store must do, and no more than `src/storage/read-store.ts` promises. Runs against each adapter and
 * against the hostile wrapper. Names are new in each test, so a shared server works.
 */
import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type {
  Collection,
  CollectionSpec,
  Fields,
  Filter,
  GuardedWrite,
  IndexSpec,
  Query,
  ReadStore,
  Scalar,
} from '../../../src/storage/read-store.js';
import { naiveQuery, type PlainDocument } from './query-oracle.js';

export interface ReadStoreHarness {
  store(): ReadStore;
  reopen(): Promise<void>;
  /** Ends the store's process or server as a crash does, then makes `store()` usable again. */
  kill?(): Promise<void>;
  close(): Promise<void>;
}

const letters = (): string =>
  randomUUID().replace(/[^a-f]/g, '') +
  randomUUID()
    .replace(/[0-9-]/g, '')
    .slice(0, 8) +
  'x';

const scalar = fc.oneof(
  fc.constantFrom<Scalar>(
    null,
    true,
    false,
    0,
    -1,
    1,
    2.5,
    -2.5,
    1e300,
    -1e300,
    5e-324,
    '',
    'a',
    'A',
    'ab',
    'b',
    '\0',
    'a\0b',
    '\u{1f600}',
    '\uffee',
    'é',
  ),
  fc.integer({ min: -3, max: 3 }),
  fc.string({ unit: 'binary', maxLength: 4 }),
);
const fieldValue = fc.oneof(
  { arbitrary: scalar, weight: 5 },
  { arbitrary: fc.array(scalar, { maxLength: 3 }), weight: 2 },
  { arbitrary: fc.constant({ nested: 1 }), weight: 1 },
);
const fieldNames = ['a', 'b', 'c'] as const;
const fieldsOf = fc.record({ a: fieldValue, b: fieldValue, c: scalar }, { requiredKeys: [] });
const field = fc.constantFrom(...fieldNames);
const bound = fc.oneof(fc.integer({ min: -3, max: 3 }), fc.constantFrom('', 'a', 'ab', '\u{1f600}', '\uffee', '\0'));
const filter: fc.Arbitrary<Filter> = fc.oneof(
  fc.record({ field, op: fc.constant('eq' as const), value: scalar }),
  fc.record({ field, op: fc.constant('in' as const), value: fc.array(scalar, { maxLength: 3 }) }),
  fc.record({ field, op: fc.constantFrom('gt' as const, 'gte' as const, 'lt' as const, 'lte' as const), value: bound }),
  fc.record({ field, op: fc.constant('contains' as const), value: fc.constantFrom('a', 'b', '') }),
);
const query: fc.Arbitrary<Query> = fc.record({
  where: fc.array(filter, { maxLength: 3 }),
  sort: fc.array(fc.record({ field, direction: fc.constantFrom('asc' as const, 'desc' as const) }), { maxLength: 2 }),
  skip: fc.integer({ min: 0, max: 5 }),
  limit: fc.integer({ min: 1, max: 10 }),
});

/** @param queryRuns how many random collections are queried, per set of indexes */
export function readStoreContract(name: string, open: () => Promise<ReadStoreHarness>, queryRuns = 60): void {
  describe(`read store contract: ${name}`, () => {
    let harness: ReadStoreHarness;
    let unique: string;
    const store = (): ReadStore => harness.store();
    const spec = (indexes: readonly (readonly string[])[] = [], version = 1): CollectionSpec => ({
      name: `t_${unique}`,
      version,
      indexes: indexes.map((fields) => ({ fields })),
    });

    beforeEach(async () => {
      harness = await open();
      unique = letters();
    });
    afterEach(async () => {
      await harness.close();
    });

    const put = (id: string, position: number, fields: Fields): GuardedWrite => ({ kind: 'put', id, position, fields });
    const del = (id: string, position: number): GuardedWrite => ({ kind: 'delete', id, position });

    describe('guarded writes', () => {
      it('are read back unchanged, with their position', async () => {
        const nodes = await store().collection(spec([['name']]));
        const fields = { name: 'n', list: [1, 'a', null], nested: { deep: [true] }, none: null, number: -1.5 };
        await nodes.write([put('a', 7, fields)]);
        expect(await nodes.get('a')).toEqual({ id: 'a', position: 7, fields });
        expect(await nodes.get('b')).toBeUndefined();
        await nodes.write([put('a', 8, { name: 'm' })]);
        expect(await nodes.get('a')).toEqual({ id: 'a', position: 8, fields: { name: 'm' } });
      });

      it('keep bytes, even large ones', async () => {
        const blobs = await store().collection(spec());
        const large = new Uint8Array(Buffer.alloc(3_000_000, 'abc'));
        const small = new Uint8Array([0, 255, 1, 2]);
        await blobs.write([put('a', 1, { large, small, empty: new Uint8Array(0), text: 'x' })]);
        const document = await blobs.get('a');
        expect(Buffer.compare(document!.fields['large'] as Uint8Array, large)).toBe(0);
        expect([...(document!.fields['small'] as Uint8Array)]).toEqual([0, 255, 1, 2]);
        expect((document!.fields['empty'] as Uint8Array).length).toBe(0);
        expect(document!.fields['text']).toBe('x');
      });

      it('are ignored when late or repeated, and the applied ones are counted', async () => {
        const nodes = await store().collection(spec([['n']]));
        expect(await nodes.write([put('a', 5, { n: 5 }), put('a', 3, { n: 3 }), put('b', 1, { n: 1 })])).toBe(2);
        expect(await nodes.write([put('a', 4, { n: 4 }), put('a', 5, { n: 50 })])).toBe(0);
        expect((await nodes.get('a'))?.fields).toEqual({ n: 5 });
        expect(await nodes.count([{ field: 'n', op: 'eq', value: 3 }])).toBe(0);
      });

      it('leave a tombstone that ignores late puts until it is purged', async () => {
        const nodes = await store().collection(spec([['n']]));
        await nodes.write([put('a', 1, { n: 1 }), del('a', 5)]);
        await nodes.write([put('a', 4, { n: 4 })]);
        await nodes.write([del('never', 9), put('never', 8, { n: 8 })]);
        expect(await nodes.get('a')).toBeUndefined();
        expect(await nodes.getMany(['a', 'never'])).toEqual([]);
        expect(await nodes.find({ limit: 10 })).toEqual({ items: [], total: 0 });
        expect(await nodes.count()).toBe(0);
        await nodes.write([put('a', 6, { n: 6 })]);
        expect((await nodes.get('a'))?.fields).toEqual({ n: 6 });
        await nodes.write([del('a', 20)]);
        // A hostile store may still be repeating a write.
        await delay(20);
        expect(await nodes.purgeTombstones(10)).toBe(1);
        await nodes.write([put('a', 15, { n: 15 })]);
        expect(await nodes.get('a')).toBeUndefined();
        await delay(20);
        expect(await nodes.purgeTombstones(20)).toBe(1);
        expect(await nodes.purgeTombstones(20)).toBe(0);
      });

      it('give the same documents and index entries in any order and with any repeats', async () => {
        const step = fc.record({
          id: fc.constantFrom('a', 'b', 'c'),
          delete: fc.boolean(),
          n: fc.integer({ min: 0, max: 2 }),
        });
        let run = 0;
        await fc.assert(
          fc.asyncProperty(fc.array(step, { maxLength: 12 }), fc.infiniteStream(fc.nat(1000)), async (steps, order) => {
            run += 1;
            const writes = steps.map((one, index) =>
              one.delete ? del(one.id, index + 1) : put(one.id, index + 1, { n: one.n, at: index }),
            );
            const shuffled = [...writes, ...writes.filter((_, index) => index % 2 === 0)]
              .map((write) => ({ write, key: order.next().value as number }))
              .sort((x, y) => x.key - y.key)
              .map(({ write }) => write);
            const straight = await store().collection(spec([['n', 'at']], run * 2));
            const mixed = await store().collection(spec([['n', 'at']], run * 2 + 1));
            await straight.write(writes);
            for (let start = 0; start < shuffled.length; start += 5)
              await mixed.write(shuffled.slice(start, start + 5));
            const everything: Query = { sort: [{ field: 'n', direction: 'asc' }], limit: 100 };
            expect(await mixed.find(everything)).toEqual(await straight.find(everything));
            for (const n of [0, 1, 2]) {
              const where: Filter[] = [{ field: 'n', op: 'eq', value: n }];
              const sorted: Query = { where, sort: [{ field: 'at', direction: 'desc' }], limit: 100 };
              expect(await mixed.find(sorted)).toEqual(await straight.find(sorted));
            }
          }),
          { numRuns: 25, seed: 11 },
        );
      });

      it('allow thousands in one call', async () => {
        const nodes = await store().collection(spec([['n']]));
        const writes = Array.from({ length: 2500 }, (_, n) => put(`id-${n}`, n + 1, { n }));
        expect(await nodes.write(writes)).toBe(2500);
        expect(await nodes.count()).toBe(2500);
        const page = await nodes.find({ sort: [{ field: 'n', direction: 'desc' }], skip: 2000, limit: 3 });
        expect(page.items.map(({ fields }) => fields['n'])).toEqual([499, 498, 497]);
        expect(page.total).toBe(2500);
      });
    });

    describe('queries', () => {
      const indexSets: readonly (readonly (readonly string[])[])[] = [
        [],
        [['a'], ['b'], ['c']],
        [
          ['a', 'b'],
          ['c', 'a'],
        ],
        [
          ['a', 'b', 'c'],
          ['b', 'c'],
          ['c', 'b', 'a'],
        ],
      ];

      const declared: readonly (readonly IndexSpec[])[] = [
        ...indexSets.map((set) => set.map((fields) => ({ fields }))),
        [
          { fields: ['a', 'b'], grouped: true },
          { fields: ['b', 'c', 'a'], grouped: true },
          { fields: ['c', 'a'], grouped: true },
          { fields: ['b'], grouped: true },
        ],
      ];
      for (const [set, indexes] of declared.entries()) {
        it(`agree with a naive filter and sort, with indexes ${JSON.stringify(indexes)}`, async () => {
          let version = 0;
          await fc.assert(
            fc.asyncProperty(
              fc.uniqueArray(
                fc.tuple(
                  fc.constantFrom('a', 'b', 'c', 'd', 'e', 'é', '\uffee', '\u{1f600}', 'aa', 'f', 'g'),
                  fieldsOf,
                ),
                {
                  selector: ([id]) => id,
                  maxLength: 11,
                },
              ),
              fc.array(query, { minLength: 4, maxLength: 8 }),
              async (entries, queries) => {
                version += 1;
                const documents: PlainDocument[] = entries.map(([id, fields]) => ({ id, fields: fields as Fields }));
                const collection = await store().collection({ ...spec([], version), indexes });
                await collection.write(documents.map(({ id, fields }, index) => put(id, index + 1, fields)));
                for (const one of queries) {
                  const page = await collection.find(one);
                  const naive = naiveQuery(documents, one);
                  expect({ ids: page.items.map(({ id }) => id), total: page.total }).toEqual(naive);
                  expect(await collection.count(one.where)).toBe(naive.total);
                }
              },
            ),
            { numRuns: queryRuns, seed: 100 + set },
          );
        });
      }

      it('distinguish and sort long strings with a common prefix', async () => {
        const collection = await store().collection(spec([['a'], ['b', 'a']]));
        const long = 'x'.repeat(600);
        const texts = [
          `${long}b`,
          `${long}a`,
          long,
          `${long}\u{1f600}`,
          'x',
          'y',
          ...[199, 200, 201].map((n) => 'x'.repeat(n)),
        ];
        const documents: PlainDocument[] = texts.map((a, index) => ({ id: `d${index}`, fields: { a, b: 1 } }));
        await collection.write(documents.map(({ id, fields }) => put(id, 1, fields)));
        const queries: Query[] = [
          { sort: [{ field: 'a', direction: 'asc' }], limit: 10 },
          { sort: [{ field: 'a', direction: 'desc' }], limit: 2 },
          { where: [{ field: 'a', op: 'eq', value: `${long}a` }], limit: 10 },
          { where: [{ field: 'a', op: 'gt', value: `${long}a` }], limit: 10 },
          { where: [{ field: 'a', op: 'eq', value: 'x'.repeat(200) }], limit: 10 },
          { where: [{ field: 'a', op: 'lte', value: 'x'.repeat(200) }], limit: 10 },
          { where: [{ field: 'a', op: 'gt', value: 'x'.repeat(200) }], limit: 10 },
          { where: [{ field: 'b', op: 'eq', value: 1 }], sort: [{ field: 'a', direction: 'desc' }], limit: 3, skip: 1 },
        ];
        for (const one of queries) {
          const page = await collection.find(one);
          expect({ ids: page.items.map(({ id }) => id), total: page.total }).toEqual(naiveQuery(documents, one));
        }
      });

      it('return everything once and in order, page by page', async () => {
        const collection = await store().collection(spec([['group', 'rank']]));
        await collection.write(
          Array.from({ length: 57 }, (_, index) => put(`id${index}`, index + 1, { group: index % 2, rank: index % 5 })),
        );
        const seen: string[] = [];
        for (let skip = 0; ; skip += 10) {
          const page = await collection.find({
            where: [{ field: 'group', op: 'eq', value: 0 }],
            sort: [{ field: 'rank', direction: 'desc' }],
            skip,
            limit: 10,
          });
          expect(page.total).toBe(29);
          if (page.items.length === 0) break;
          seen.push(...page.items.map(({ id }) => id));
        }
        expect(seen).toHaveLength(29);
        expect(new Set(seen).size).toBe(29);
      });

      it('find text by what it contains as it is, without patterns', async () => {
        const collection = await store().collection(spec());
        const texts = ['a.b', 'axb', 'a.B', 'xa.by', 'a', 'a%b', 'a_b', '[a.b]', 'a.*b'];
        await collection.write(texts.map((text, index) => put(text, index + 1, { text })));
        const containing = async (value: string): Promise<string[]> => {
          const { items } = await collection.find({ where: [{ field: 'text', op: 'contains', value }], limit: 50 });
          return items.map(({ id }) => id).sort();
        };
        expect(await containing('a.b')).toEqual(['[a.b]', 'a.b', 'xa.by']);
        expect(await containing('.*')).toEqual(['a.*b']);
        expect(await containing('%')).toEqual(['a%b']);
      });

      it('refuse a page without a limit', async () => {
        const collection = await store().collection(spec());
        await expect(collection.find({ limit: 0 })).rejects.toThrow(RangeError);
      });

      it('use indexes that were only wanted after the documents were written', async () => {
        const before = await store().collection({ ...spec([['n']]), indexedLater: true });
        await before.write(Array.from({ length: 90 }, (_, n) => put(`id${n}`, n + 1, { n: n % 10 })));
        await before.write([put('id3', 100, { n: 4 }), { kind: 'delete', id: 'id13', position: 101 }]);
        const after = await store().collection(spec([['n']]));
        expect(await after.count([{ field: 'n', op: 'eq', value: 3 }])).toBe(7);
        await before.write([put('id23', 102, { n: 4 })]);
        expect(await after.count([{ field: 'n', op: 'eq', value: 4 }])).toBe(11);
      });

      it('use an index that was declared after the documents were written', async () => {
        const before = await store().collection(spec());
        await before.write(Array.from({ length: 450 }, (_, n) => put(`id${n}`, n + 1, { n: n % 10 })));
        const after = await store().collection(spec([['n']]));
        const where: Filter[] = [{ field: 'n', op: 'eq', value: 3 }];
        expect(await after.count(where)).toBe(45);
        await before.write([put('id3', 1000, { n: 4 })]);
        expect(await after.count(where)).toBe(44);
        expect(await before.count(where)).toBe(44);
      });
    });

    describe('unguarded documents', () => {
      it('are set with the last one winning, found by their fields, and removed without a trace', async () => {
        const leases = await store().collection(spec([['kind']]));
        await leases.set([
          { id: 'a', fields: { kind: 'x' } },
          { id: 'b', fields: { kind: 'x' } },
        ]);
        await leases.set([{ id: 'a', fields: { kind: 'y' } }]);
        expect(await leases.get('a')).toEqual({ id: 'a', position: 0, fields: { kind: 'y' } });
        expect((await leases.find({ where: [{ field: 'kind', op: 'eq', value: 'x' }], limit: 9 })).items).toHaveLength(
          1,
        );
        await leases.remove(['a', 'never']);
        expect(await leases.get('a')).toBeUndefined();
        await leases.set([{ id: 'a', fields: { kind: 'z' } }]);
        expect((await leases.get('a'))?.fields).toEqual({ kind: 'z' });
      });

      it('are inserted by exactly one of many callers', async () => {
        const keys = await store().collection(spec());
        for (let round = 0; round < 5; round += 1) {
          const won = await Promise.all(Array.from({ length: 8 }, (_, n) => keys.insert(`k${round}`, { n })));
          expect(won.filter(Boolean)).toHaveLength(1);
          expect((await keys.get(`k${round}`))?.fields).toEqual({ n: won.indexOf(true) });
        }
      });
    });

    describe('leases', () => {
      const claim = (name: string, holder: string, ttlMs = 60_000) => ({ name, holder, ttlMs, data: { at: holder } });

      it('are held by one until they are released', async () => {
        const { leases } = store();
        const kind = `${unique}-sessions`;
        expect(await leases.acquire(kind, claim('n1', 'a'))).toBe(true);
        expect(await leases.acquire(kind, claim('n1', 'b'))).toBe(false);
        expect(await leases.acquire(kind, claim('n1', 'a'))).toBe(true);
        const held = await leases.get(kind, 'n1');
        expect(held).toMatchObject({ kind, name: 'n1', holder: 'a', data: { at: 'a' } });
        expect(held!.remainingMs).toBeGreaterThan(0);
        expect(held!.remainingMs).toBeLessThanOrEqual(60_000);
        await leases.release(kind, 'n1', 'b');
        expect((await leases.get(kind, 'n1'))?.holder).toBe('a');
        await leases.release(kind, 'n1', 'a');
        expect(await leases.get(kind, 'n1')).toBeUndefined();
        expect(await leases.acquire(kind, claim('n1', 'b'))).toBe(true);
      });

      it('can be taken from their holder, who learns it at the next renewal', async () => {
        const { leases } = store();
        const kind = `${unique}-k`;
        await leases.take(kind, claim('n1', 'a'));
        await leases.take(kind, claim('n2', 'a'));
        await leases.take(kind, claim('n1', 'b'));
        expect(await leases.renew(kind, [claim('n1', 'a'), claim('n2', 'a'), claim('n3', 'a')])).toEqual(['n1', 'n3']);
        expect((await leases.list(kind)).map(({ name: of, holder }) => `${of}:${holder}`).sort()).toEqual([
          'n1:b',
          'n2:a',
        ]);
        expect(await leases.list(`${kind}x`)).toEqual([]);
      });

      it('are renewed many at once, and those that are lost are named', async () => {
        const { leases } = store();
        const kind = `${unique}-k`;
        const names = Array.from({ length: 450 }, (_, index) => `many-${index}`);
        await Promise.all(names.map((name) => leases.take(kind, claim(name, 'a'))));
        for (const name of ['many-7', 'many-449']) await leases.take(kind, claim(name, 'b'));
        const lost = await leases.renew(
          kind,
          names.map((name) => claim(name, 'a', 120_000)),
        );
        expect(lost).toEqual(['many-7', 'many-449']);
        const held = (await leases.list(kind)).filter(({ holder }) => holder === 'a');
        expect(held.filter(({ remainingMs }) => remainingMs > 60_000)).toHaveLength(448);
      });

      it('have the data of their last renewal, changed or not', async () => {
        const { leases } = store();
        const kind = `${unique}-d`;
        const at = (name: string, position: number) => ({ ...claim(name, 'a'), data: { position } });
        for (const name of ['n1', 'n2', 'n3']) await leases.take(kind, at(name, 1));
        expect(await leases.renew(kind, [at('n1', 1), at('n2', 2), at('n3', 3)])).toEqual([]);
        const held = (await leases.list(kind)).map(({ name, data }) => [name, data]);
        expect(held.sort()).toEqual([
          ['n1', { position: 1 }],
          ['n2', { position: 2 }],
          ['n3', { position: 3 }],
        ]);
        for (const { remainingMs } of await leases.list(kind)) expect(remainingMs).toBeGreaterThan(0);
        // Another holder's claim changes nothing.
        expect(await leases.renew(kind, [{ ...at('n1', 9), holder: 'b' }])).toEqual(['n1']);
        expect((await leases.get(kind, 'n1'))?.data).toEqual({ position: 1 });
      });

      it('expire by themselves, can still be extended by their holder, and are purged', async () => {
        const { leases } = store();
        const kind = `${unique}-e`;
        await leases.take(kind, claim('n1', 'a', 30));
        await leases.take(kind, claim('n2', 'a', 60_000));
        for (let waited = 0; (await leases.get(kind, 'n1')) !== undefined && waited < 5000; waited += 20)
          await delay(20);
        expect((await leases.list(kind)).map(({ name: of }) => of)).toEqual(['n2']);
        expect(await leases.renew(kind, [claim('n1', 'a', 60_000)])).toEqual([]);
        expect((await leases.get(kind, 'n1'))?.holder).toBe('a');
        await leases.take(kind, claim('n1', 'a', 1));
        await delay(30);
        expect(await leases.acquire(kind, claim('n1', 'b', 1))).toBe(true);
        await delay(30);
        await leases.purge(kind, 5);
        expect(await leases.renew(kind, [claim('n1', 'b')])).toEqual(['n1']);
        expect((await leases.get(kind, 'n2'))?.holder).toBe('a');
      });

      it('end by a clock that tells its time, or by that of this process', async () => {
        const time = await store().time();
        expect(time?.kind ?? 'clock').toBe('clock');
        if (time !== undefined) expect(Math.abs(time.at - Date.now())).toBeLessThan(2_000);
      });

      it('are acquired by exactly one of many callers', async () => {
        const { leases } = store();
        const won = await Promise.all(
          Array.from({ length: 8 }, (_, n) => leases.acquire(`${unique}-r`, claim('one', `h${n}`))),
        );
        expect(won.filter(Boolean)).toHaveLength(1);
        expect((await leases.get(`${unique}-r`, 'one'))?.holder).toBe(`h${won.indexOf(true)}`);
      });
    });

    describe('checkpoints and versions', () => {
      it('only move forward until they are deleted', async () => {
        const projection = `p-${unique}`;
        const at = (commit: number, prepare: number) => ({ commit, prepare });
        expect(await store().loadCheckpoint(projection, 1)).toBeUndefined();
        await store().saveCheckpoint(projection, 1, at(10, 9));
        await store().saveCheckpoint(projection, 1, at(9, 20));
        expect(await store().loadCheckpoint(projection, 1)).toEqual(at(10, 9));
        await store().saveCheckpoint(projection, 1, at(10, 10));
        await store().saveCheckpoint(projection, 1, at(10, 0));
        expect(await store().loadCheckpoint(projection, 1)).toEqual(at(10, 10));
        expect(await store().loadCheckpoint(projection, 2)).toBeUndefined();
        await harness.reopen();
        expect(await store().loadCheckpoint(projection, 1)).toEqual(at(10, 10));
        await store().saveCheckpoint(projection, 1, at(2 ** 52, 2 ** 52));
        expect(await store().loadCheckpoint(projection, 1)).toEqual(at(2 ** 52, 2 ** 52));
        const anchors = [{ stream: 'svc-fleet', revision: 7, id: 'an event' }];
        await store().saveCheckpoint(projection, 1, { ...at(2 ** 52, 2 ** 52), anchors });
        expect(await store().loadCheckpoint(projection, 1)).toEqual(at(2 ** 52, 2 ** 52));
        await store().saveCheckpoint(projection, 1, { ...at(2 ** 52 + 1, 1), anchors });
        await store().saveCheckpoint(projection, 3, { ...at(1, 1), anchors });
        expect(await store().loadCheckpoint(projection, 1)).toEqual({ ...at(2 ** 52 + 1, 1), anchors });
        expect(await store().loadCheckpoint(projection, 3)).toEqual({ ...at(1, 1), anchors });
        // A hostile store may still be repeating a save.
        await delay(20);
        await store().deleteCheckpoint(projection, 1);
        expect(await store().loadCheckpoint(projection, 1)).toBeUndefined();
      });

      it('keep the active version', async () => {
        const projection = `p-${unique}`;
        expect(await store().activeVersion(projection)).toBeUndefined();
        await store().activate(projection, 3);
        await store().activate(projection, 2);
        await harness.reopen();
        expect(await store().activeVersion(projection)).toBe(2);
        expect(await store().activeVersion(`${projection}x`)).toBeUndefined();
      });
    });

    describe('collections', () => {
      it('of two versions are independent, and dropping one leaves the other', async () => {
        const [one, two] = [await store().collection(spec([['n']], 1)), await store().collection(spec([['n']], 2))];
        await one.write(Array.from({ length: 250 }, (_, n) => put(`id${n}`, n + 1, { n: 1 })));
        await one.write([del('gone', 1000)]);
        await two.write([put('id1', 5, { n: 2 })]);
        await delay(20);
        await store().drop(one.spec.name, 1);
        await store().drop(one.spec.name, 1);
        expect(await two.count()).toBe(1);
        const again = await store().collection(spec([['n']], 1));
        expect(await again.count()).toBe(0);
        expect(await again.count([{ field: 'n', op: 'eq', value: 1 }])).toBe(0);
        await again.write([put('gone', 1, { n: 1 })]);
        expect(await again.count()).toBe(1);
      });

      it('keep documents, tombstones and indexes after a reopening', async () => {
        const first = await store().collection(spec([['n']]));
        await first.write([put('a', 1, { n: 1 }), put('b', 2, { n: 2 }), del('c', 3)]);
        await harness.reopen();
        const again: Collection = await store().collection(spec([['n']]));
        expect(await again.find({ where: [{ field: 'n', op: 'eq', value: 2 }], limit: 5 })).toEqual({
          items: [{ id: 'b', position: 2, fields: { n: 2 } }],
          total: 1,
        });
        await again.write([put('c', 2, { n: 3 })]);
        expect(await again.get('c')).toBeUndefined();
        await store().ping();
      });

      it('keep every acknowledged write when the store is killed', async (context) => {
        if (harness.kill === undefined) return context.skip();
        const nodes = await store().collection(spec([['n']]));
        await nodes.write([put('a', 1, { n: 1 }), put('b', 2, { n: 2 }), del('c', 3)]);
        await nodes.set([{ id: 'd', fields: { n: 4 } }]);
        expect(await nodes.insert('e', { owner: 'x' })).toBe(true);
        const projection = `p${randomUUID()}`;
        await store().saveCheckpoint(projection, 1, { commit: 7, prepare: 0 });
        await store().activate(projection, 1);
        const claim = { name: projection, holder: 'h', ttlMs: 60_000, data: 1 };
        expect(await store().leases.acquire('k', claim)).toBe(true);
        await harness.kill();
        const again: Collection = await store().collection(nodes.spec);
        expect((await again.find({ limit: 10 })).items.map(({ id }) => id)).toEqual(['a', 'b', 'd', 'e']);
        expect((await again.get('e'))?.fields['owner']).toBe('x');
        await again.write([put('c', 2, { n: 3 })]);
        expect(await again.get('c')).toBeUndefined();
        expect(await store().loadCheckpoint(projection, 1)).toEqual({ commit: 7, prepare: 0 });
        expect(await store().activeVersion(projection)).toBe(1);
        expect(await store().leases.acquire('k', { ...claim, holder: 'other' })).toBe(false);
      });

      it('return documents of getMany in order, without missing ones', async () => {
        const nodes = await store().collection(spec());
        await nodes.write([put('a', 1, {}), put('b', 2, {})]);
        expect((await nodes.getMany(['b', 'x', 'a', 'b'])).map(({ id }) => id)).toEqual(['b', 'a', 'b']);
      });
    });
  });
}
