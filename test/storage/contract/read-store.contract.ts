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
  GroupQuery,
  IndexSpec,
  ReadStore,
  StoredDocument,
} from '../../../src/storage/read-store.js';
import { naiveQuery, type PlainDocument } from './query-oracle.js';
import { leaseOf } from '../../support/lease-of.js';

export interface ReadStoreHarness {
  store(): ReadStore;
  reopen(): Promise<void>;
  /** Ends the store's process or server as a crash does, then makes `store()` usable again. */
  kill?(): Promise<void>;
  /** Resolves when the store repeats no write any more. */
  settled?(): Promise<void>;
  close(): Promise<void>;
}

const letters = (): string =>
  randomUUID().replace(/[^a-f]/g, '') +
  randomUUID()
    .replace(/[0-9-]/g, '')
    .slice(0, 8) +
  'x';

const index: IndexSpec = { group: 'in', order: 'at' };
const group = fc.constantFrom('a', 'A', 'ab', '', '\0', 'a\0b', 'é', '\u{1f600}', 'x'.repeat(200), 'x'.repeat(201));
const order = fc.constantFrom('', '1', '10', '2', 'a', '~', ' ');
const timed: IndexSpec = { ...index, time: 'when' };
const time = fc.constantFrom('2020-01-01T00:00:00.000Z', '2020-01-01T00:00:00.001Z', '2021-06-30T23:59:59.999Z');
const fieldsOf = fc.record(
  {
    when: time,
    in: fc.oneof(group, fc.array(fc.oneof(group, fc.constantFrom(null, 1)), { maxLength: 4 }), fc.constant(null)),
    at: order,
  },
  { requiredKeys: ['at', 'when'] },
);
const query: fc.Arbitrary<GroupQuery> = fc.record(
  {
    groups: fc.array(group, { minLength: 1, maxLength: 3 }),
    from: order,
    below: order,
    times: fc.record({ from: time, to: time }, { requiredKeys: [] }),
    direction: fc.constantFrom('asc' as const, 'desc' as const),
    skip: fc.integer({ min: 0, max: 5 }),
    limit: fc.integer({ min: 1, max: 10 }),
  },
  { requiredKeys: ['groups', 'direction', 'limit'] },
);

/** @param queryRuns how many random collections are written and queried */
export function readStoreContract(name: string, open: () => Promise<ReadStoreHarness>, queryRuns = 60): void {
  describe(`read store contract: ${name}`, () => {
    let harness: ReadStoreHarness;
    let unique: string;
    const store = (): ReadStore => harness.store();
    const spec = (version = 1): CollectionSpec => ({ name: `t_${unique}`, version, index });

    beforeEach(async () => {
      harness = await open();
      unique = letters();
    });
    afterEach(async () => {
      await harness.close();
    });

    const put = (id: string, position: number, fields: Fields): StoredDocument => ({ id, position, fields });
    const ids = async (collection: Collection, name: string): Promise<readonly string[]> =>
      (await collection.find({ groups: [name], direction: 'asc', limit: 100 })).map(({ id }) => id);

    describe('guarded writes', () => {
      it('are read back unchanged, with their position', async () => {
        const nodes = await store().collection(spec());
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

      it('are ignored when late or repeated, also within one call', async () => {
        const nodes = await store().collection(spec());
        await nodes.write([put('a', 5, { n: 5 }), put('a', 3, { n: 3 }), put('b', 1, { in: 'b', at: '' })]);
        expect((await nodes.get('a'))?.fields).toEqual({ n: 5 });
        await nodes.write([put('a', 4, { n: 4 }), put('a', 5, { n: 50 })]);
        expect((await nodes.get('a'))?.fields).toEqual({ n: 5 });
        expect(await ids(nodes, 'b')).toEqual(['b']);
      });

      it('give the same documents and index entries in any order and with any repeats', async () => {
        const step = fc.record({ id: fc.constantFrom('a', 'b', 'c'), n: fc.integer({ min: 0, max: 2 }) });
        let run = 0;
        await fc.assert(
          fc.asyncProperty(fc.array(step, { maxLength: 12 }), fc.infiniteStream(fc.nat(1000)), async (steps, order) => {
            run += 1;
            const writes = steps.map(({ id, n }, at) => put(id, at + 1, { in: [`n${n}`, 'all'], at: `${at}` }));
            const shuffled = [...writes, ...writes.filter((_, index) => index % 2 === 0)]
              .map((write) => ({ write, key: order.next().value as number }))
              .sort((x, y) => x.key - y.key)
              .map(({ write }) => write);
            const straight = await store().collection(spec(run * 2));
            const mixed = await store().collection(spec(run * 2 + 1));
            await straight.write(writes);
            for (let start = 0; start < shuffled.length; start += 5)
              await mixed.write(shuffled.slice(start, start + 5));
            expect(await mixed.list(undefined, 100)).toEqual(await straight.list(undefined, 100));
            for (const name of ['n0', 'n1', 'n2', 'all']) {
              const found = await straight.find({ groups: [name], direction: 'desc', limit: 100 });
              expect(await mixed.find({ groups: [name], direction: 'desc', limit: 100 })).toEqual(found);
              expect(await mixed.count({ groups: [name] })).toBe(found.length);
            }
          }),
          { numRuns: Math.min(25, queryRuns), seed: 11 },
        );
      });

      it('allow thousands in one call', async () => {
        const nodes = await store().collection(spec());
        const at = (n: number): string => String(n).padStart(4, '0');
        const writes = Array.from({ length: 2500 }, (_, n) =>
          put(`id-${n}`, n + 1, { in: n % 2 === 0 ? ['all', 'even'] : 'all', at: at(n), n }),
        );
        await nodes.write(writes);
        expect(await nodes.count({ groups: ['all'] })).toBe(2500);
        expect(await nodes.count({ groups: ['all', 'even'] })).toBe(1250);
        expect(await nodes.count({ groups: ['all'], from: at(100), below: at(2400) })).toBe(2300);
        const page = { groups: ['all'], direction: 'desc', skip: 2000, limit: 3 } as const;
        expect((await nodes.find(page)).map(({ fields }) => fields['n'])).toEqual([499, 498, 497]);
        const even = await nodes.find({ ...page, groups: ['all', 'even'], skip: 1100 });
        expect(even.map(({ fields }) => fields['n'])).toEqual([298, 296, 294]);
      });
    });

    describe('queries', () => {
      it('agree with a naive filter and sort', async () => {
        let version = 0;
        const id = fc.constantFrom('a', 'b', 'c', 'd', 'e', 'é', '\uffee', '\u{1f600}', 'aa', 'f', 'g');
        await fc.assert(
          fc.asyncProperty(
            fc.uniqueArray(fc.tuple(id, fieldsOf), { selector: ([one]) => one, maxLength: 11 }),
            fc.array(query, { minLength: 4, maxLength: 8 }),
            async (entries, queries) => {
              version += 1;
              const documents: PlainDocument[] = entries.map(([one, fields]) => ({
                id: one,
                fields: fields as Fields,
              }));
              const collection = await store().collection({ ...spec(version), index: timed });
              await collection.write(documents.map((one, at) => put(one.id, at + 1, one.fields)));
              for (const one of queries) {
                const page = await collection.find(one);
                const naive = naiveQuery(documents, timed, one);
                expect(page.map((document) => document.id)).toEqual(naive.ids);
                expect(await collection.count(one)).toBe(naive.total);
              }
            },
          ),
          { numRuns: queryRuns, seed: 100 },
        );
      });

      it('follow a document from group to group', async () => {
        const collection = await store().collection(spec());
        await collection.write([put('a', 1, { in: ['x', 'y'], at: '1' }), put('b', 2, { in: 'x', at: '2' })]);
        await collection.write([put('a', 3, { in: ['y', 'z'], at: '3' })]);
        expect(await Promise.all(['x', 'y', 'z'].map((name) => ids(collection, name)))).toEqual([['b'], ['a'], ['a']]);
        expect(await collection.count({ groups: ['x'] })).toBe(1);
        await collection.remove(['a', 'b']);
        expect(await Promise.all(['x', 'y', 'z'].map((name) => ids(collection, name)))).toEqual([[], [], []]);
        expect(await collection.count({ groups: ['x'] })).toBe(0);
        expect(await collection.count({ groups: ['y'] })).toBe(0);
      });

      it('list every document once, by id', async () => {
        const collection = await store().collection({ name: `l_${unique}`, version: 1 });
        const names = Array.from({ length: 29 }, (_, n) => `id-${n}`);
        await collection.write(names.map((name, n) => put(name, n + 1, {})));
        const seen: string[] = [];
        for (let pages = 0; pages < 3; pages += 1) {
          seen.push(...(await collection.list(seen.at(-1), 10)).map(({ id }) => id));
        }
        expect(seen).toEqual(names.sort());
      });

      it('find a document by its new time alone when nothing else of its place has changed', async () => {
        const collection = await store().collection({ ...spec(), index: timed });
        const [before, after] = ['2020-01-01T00:00:00.000Z', '2021-01-01T00:00:00.000Z'];
        for (const [n, when] of [before, after].entries())
          await collection.write([put('a', n + 1, { in: 'x', at: '1', when })]);
        expect(await collection.count({ groups: ['x'], times: { to: before } })).toBe(0);
        expect(await collection.count({ groups: ['x'], times: { from: after } })).toBe(1);
        expect(await collection.count({ groups: ['x'] })).toBe(1);
      });

      it('are refused without a limit, a group or an index, for times without times, and so is an order that is no printable text', async () => {
        const collection = await store().collection(spec());
        const good = { groups: ['a'], direction: 'asc', limit: 1 } as const;
        await expect(collection.find({ ...good, limit: 0 })).rejects.toThrow(RangeError);
        await expect(collection.find({ ...good, skip: -1 })).rejects.toThrow(RangeError);
        await expect(collection.find({ ...good, groups: [] })).rejects.toThrow(RangeError);
        await expect(collection.count({ groups: [] })).rejects.toThrow(RangeError);
        await expect(collection.find({ ...good, times: {} })).rejects.toThrow(RangeError);
        const without = await store().collection({ name: `o_${unique}`, version: 1 });
        await expect(without.find(good)).rejects.toThrow(RangeError);
        for (const at of [1, null, 'é', 'x'.repeat(201)]) {
          await expect(collection.write([put('a', 1, { in: 'a', at })])).rejects.toThrow(RangeError);
        }
        expect(await collection.get('a')).toBeUndefined();
      });
    });

    describe('unguarded documents', () => {
      it('are set with the last one winning, found by their fields, and removed without a trace', async () => {
        const leases = await store().collection(spec());
        await leases.set([
          { id: 'a', fields: { in: 'x', at: '' } },
          { id: 'b', fields: { in: 'x', at: '' } },
        ]);
        await leases.set([{ id: 'a', fields: { in: 'y', at: '' } }]);
        expect(await leases.get('a')).toEqual({ id: 'a', position: 0, fields: { in: 'y', at: '' } });
        expect(await ids(leases, 'x')).toEqual(['b']);
        await leases.remove(['a', 'never']);
        expect(await leases.get('a')).toBeUndefined();
        await leases.set([{ id: 'a', fields: { in: 'z', at: '' } }]);
        expect((await leases.get('a'))?.fields).toEqual({ in: 'z', at: '' });
      });

      it('are inserted in one call, those that exist left as they are', async () => {
        const keys = await store().collection(spec());
        await keys.set([{ id: 'b', fields: { n: 0 } }]);
        const all = ['a', 'b', 'c'].map((id, n) => ({ id, fields: { n: n + 1 } }));
        expect(await keys.insert(all)).toEqual(['a', 'c']);
        expect(await keys.insert(all)).toEqual([]);
        expect((await keys.getMany(['a', 'b', 'c'])).map(({ fields }) => fields['n'])).toEqual([1, 0, 3]);
        expect(await keys.insert([])).toEqual([]);
      });

      it('are inserted by exactly one of many callers', async () => {
        const keys = await store().collection(spec());
        for (let round = 0; round < 5; round += 1) {
          const won = await Promise.all(
            Array.from({ length: 8 }, (_, n) => keys.insert([{ id: `k${round}`, fields: { n } }])),
          );
          expect(won.flat()).toEqual([`k${round}`]);
          expect((await keys.get(`k${round}`))?.fields).toEqual({ n: won.findIndex(({ length }) => length > 0) });
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
        const held = await leaseOf(leases, kind, 'n1');
        expect(held).toMatchObject({ kind, name: 'n1', holder: 'a', data: { at: 'a' } });
        expect(held!.remainingMs).toBeGreaterThan(0);
        expect(held!.remainingMs).toBeLessThanOrEqual(60_000);
        await leases.release(kind, 'n1', 'b');
        expect((await leaseOf(leases, kind, 'n1'))?.holder).toBe('a');
        await leases.release(kind, 'n1', 'a');
        expect(await leaseOf(leases, kind, 'n1')).toBeUndefined();
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
        const names = Array.from({ length: 60 }, (_, index) => `many-${index}`);
        await Promise.all(names.map((name) => leases.take(kind, claim(name, 'a'))));
        for (const name of ['many-7', 'many-59']) await leases.take(kind, claim(name, 'b'));
        const lost = await leases.renew(
          kind,
          names.map((name) => claim(name, 'a', 120_000)),
        );
        expect(lost).toEqual(['many-7', 'many-59']);
        const held = (await leases.list(kind)).filter(({ holder }) => holder === 'a');
        expect(held.filter(({ remainingMs }) => remainingMs > 60_000)).toHaveLength(58);
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
        expect((await leaseOf(leases, kind, 'n1'))?.data).toEqual({ position: 1 });
      });

      it('expire by themselves, can still be extended by their holder, and are purged', async () => {
        const { leases } = store();
        const kind = `${unique}-e`;
        await leases.take(kind, claim('n1', 'a', 30));
        await leases.take(kind, claim('n2', 'a', 60_000));
        for (let waited = 0; (await leaseOf(leases, kind, 'n1')) !== undefined && waited < 5000; waited += 20)
          await delay(20);
        expect((await leases.list(kind)).map(({ name: of }) => of)).toEqual(['n2']);
        expect(await leases.renew(kind, [claim('n1', 'a', 60_000)])).toEqual([]);
        expect((await leaseOf(leases, kind, 'n1'))?.holder).toBe('a');
        await leases.take(kind, claim('n1', 'a', 1));
        await delay(30);
        expect(await leases.acquire(kind, claim('n1', 'b', 1))).toBe(true);
        await delay(30);
        await leases.purge(kind, 5);
        expect(await leases.renew(kind, [claim('n1', 'b')])).toEqual(['n1']);
        expect((await leaseOf(leases, kind, 'n2'))?.holder).toBe('a');
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
        expect((await leaseOf(leases, `${unique}-r`, 'one'))?.holder).toBe(`h${won.indexOf(true)}`);
      });
    });

    describe('checkpoints and versions', () => {
      it('only move forward until they are deleted', async () => {
        const projection = `p-${unique}`;
        const at = (commit: number, prepare: number) => ({ commit, prepare, anchors: [] });
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
        await harness.settled?.();
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
        const [one, two] = [await store().collection(spec(1)), await store().collection(spec(2))];
        await one.write(Array.from({ length: 250 }, (_, n) => put(`id${n}`, n + 1, { in: '1', at: '' })));
        await one.write([put('gone', 1000, {})]);
        await two.write([put('id1', 5, { in: '1', at: '' })]);
        await harness.settled?.();
        await store().drop(one.spec.name, 1);
        await store().drop(one.spec.name, 1);
        expect(await ids(two, '1')).toEqual(['id1']);
        const again = await store().collection(spec(1));
        expect(await again.list(undefined, 10)).toEqual([]);
        expect(await again.count({ groups: ['1'] })).toBe(0);
        await again.write([put('gone', 1, { in: '1', at: '' })]);
        expect(await ids(again, '1')).toEqual(['gone']);
      });

      it('keep documents and indexes after a reopening', async () => {
        const first = await store().collection(spec());
        await first.write([put('a', 1, { in: '1', at: '' }), put('b', 2, { in: '2', at: '' })]);
        await harness.reopen();
        const again: Collection = await store().collection(spec());
        expect(await ids(again, '2')).toEqual(['b']);
        expect(await again.count({ groups: ['2'] })).toBe(1);
        await store().ping();
      });

      it('keep every acknowledged write when the store is killed', async (context) => {
        if (harness.kill === undefined) return context.skip();
        const nodes = await store().collection(spec());
        await nodes.write([put('a', 1, { n: 1 }), put('b', 2, { n: 2 })]);
        await nodes.set([{ id: 'd', fields: { n: 4 } }]);
        expect(await nodes.insert([{ id: 'e', fields: { owner: 'x' } }])).toEqual(['e']);
        const projection = `p${randomUUID()}`;
        await store().saveCheckpoint(projection, 1, { commit: 7, prepare: 0, anchors: [] });
        await store().activate(projection, 1);
        await harness.kill();
        const again: Collection = await store().collection(nodes.spec);
        expect((await again.list(undefined, 10)).map(({ id }) => id)).toEqual(['a', 'b', 'd', 'e']);
        expect((await again.get('e'))?.fields['owner']).toBe('x');
        expect(await store().loadCheckpoint(projection, 1)).toEqual({ commit: 7, prepare: 0, anchors: [] });
        expect(await store().activeVersion(projection)).toBe(1);
      });

      it('return documents of getMany in order, without missing ones', async () => {
        const nodes = await store().collection(spec());
        await nodes.write([put('a', 1, {}), put('b', 2, {})]);
        expect((await nodes.getMany(['b', 'x', 'a', 'b'])).map(({ id }) => id)).toEqual(['b', 'a', 'b']);
      });
    });
  });
}
