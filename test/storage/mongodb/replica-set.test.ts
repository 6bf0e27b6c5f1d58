/**
 * The read store on a replica set: what it requires of servers, and what elections and lost answers mean for callers.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Document } from 'mongodb';
import { silentLogger } from '../../../src/kernel/logger.js';
import { auditQueries } from '../../../src/projections/models/audit-queries.js';
import { audit, type AuditFields } from '../../../src/projections/models/audit.js';
import type { NameFields } from '../../../src/projections/models/names.js';
import type { EventStore } from '../../../src/storage/event-store.js';
import { openMongoDb } from '../../../src/storage/mongodb/open-mongodb.js';
import type { Collection, CollectionSpec, ReadStore } from '../../../src/storage/read-store.js';
import { ferretDbBuilt } from '../../servers/ferretdb-process.js';
import { startMongoReplicaSet, type MongoReplicaSet } from '../../servers/mongodb-replica-set.js';
import { leaseOf } from '../../support/lease-of.js';
import { codeOf, persist } from '../contract/mongodb-harness.js';

const spec: CollectionSpec = { name: 'kept', version: 1, index: { group: 'in', order: 'at' } };
/** The fields that a filter asks for. */
function fieldsOf(filter: Document): string[] {
  return Object.entries(filter).flatMap(([key, value]) =>
    key === '$and' || key === '$or' ? (value as Document[]).flatMap(fieldsOf) : [key],
  );
}

describe.skipIf(!ferretDbBuilt())('a replica set', () => {
  let set: MongoReplicaSet;
  let store: ReadStore;
  let collection: Collection;
  async function open(options = ''): Promise<void> {
    store = await openMongoDb({ url: set.url('replicas', options), logger: silentLogger });
    collection = await store.collection(spec);
    set.seen.length = 0;
  }
  beforeEach(async () => {
    set = await startMongoReplicaSet();
  });
  afterEach(async () => {
    await store?.close();
    await set.close();
  });

  it('is written to a majority with its journal, and read from a majority, whatever the URL says', async () => {
    await open('&w=1&journal=false&wtimeoutMS=1&readConcernLevel=local&readPreference=secondaryPreferred');
    await collection.write([{ id: 'a', position: 1, fields: { n: 1 } }]);
    await collection.insert([{ id: 'b', fields: { n: 2 } }]);
    await collection.set([{ id: 'b', fields: { n: 3 } }]);
    await collection.get('b');
    await collection.list(undefined, 5);
    await store.leases.take('k', { name: 'n', holder: 'h', ttlMs: 1000, data: null });
    await store.saveCheckpoint('p', 1, { commit: 1, prepare: 1, anchors: [] });
    const writing = set.seen.filter((command) => 'insert' in command || 'update' in command);
    expect(writing.length).toBeGreaterThan(4);
    for (const { writeConcern } of writing)
      expect(writeConcern).toMatchObject({ w: 'majority', j: true, wtimeout: 10_000 });
    const reading = set.seen.filter((command) => 'find' in command || 'aggregate' in command);
    expect(reading.length).toBeGreaterThan(2);
    for (const { readConcern } of reading) expect(readConcern).toEqual({ level: 'majority' });
  });

  /** Makes a call of each kind. */
  async function callEach(): Promise<void> {
    await store.collection({ ...spec, version: 2 });
    await collection.write([{ id: 'a', position: 1, fields: { n: 1 } }]);
    await collection.write([{ id: 'a', position: 2, fields: { n: 1 } }]);
    await Promise.all([collection.get('a'), collection.getMany(['a', 'b']), collection.count({ groups: ['x', 'y'] })]);
    await collection.find({ groups: ['x'], from: '0', direction: 'asc', limit: 1 });
    await collection.insert([{ id: 'b', fields: { n: 2 } }]);
    await Promise.all([store.loadCheckpoint('p', 1), store.activeVersion('p')]);
    const claim = { name: 'n', holder: 'h', ttlMs: 1000, data: null };
    await Promise.all([store.leases.list('k'), store.leases.renew('k', [claim])]);
    await store.activate('p', 2);
    await store.drop('kept', 2);
  }

  it('is asked for every read with a time after which it gives up', async () => {
    await open();
    await callEach();
    const reads = set.seen.filter((command) => ['find', 'aggregate', 'listIndexes'].some((name) => name in command));
    expect(reads.length).toBeGreaterThanOrEqual(10);
    for (const read of reads) expect(read).toMatchObject({ maxTimeMS: 8_000 });
  });

  it('counts a list of the audit, whatever it is filtered by, in one index and without the documents', async () => {
    await open();
    const { name, index } = audit;
    const entries = await store.collection<AuditFields>({ name, version: 1, index });
    const names = await store.collection<NameFields>({ name: 'names', version: 1 });
    const created: string[][] = [];
    for (const { createIndexes, indexes: made } of set.seen) {
      if (createIndexes === 'audit__v1') created.push(...made.map((index: Document) => Object.keys(index['key'])));
    }
    const eventStore = {} as EventStore;
    const { list } = auditQueries(eventStore, () => ({ audit: entries, names }));
    const one = {
      actor: 'ada',
      action: 'node.update',
      resourceType: 'node',
      resourceId: 'n-1',
      from: '2025-01-01T00:00:00Z',
    };
    for (const includeAccounts of [true, false]) {
      for (const filters of [{}, ...Object.entries(one).map(([field, value]) => ({ [field]: value }))]) {
        // Without accounts, the entries of one resource are looked at one by one.
        if ('resourceId' in filters && !includeAccounts) continue;
        set.seen.length = 0;
        // A page beyond the first is counted even if it is empty.
        await list({ page: 2, pageSize: 20, includeAccounts, ...filters });
        const counts = set.seen.filter((command) => 'aggregate' in command);
        expect(counts.length).toBeGreaterThan(0);
        const asked = counts.map((command) => fieldsOf(command['pipeline'][0].$match));
        const inAnIndex = (fields: readonly string[]): boolean =>
          created.some((key) => fields.every((field) => key.includes(field)));
        // The first count is that of all entries with a scalar where the index holds an order key; the others look at
        // the index entries of lists, of which the audit has none.
        expect([filters, asked[0], inAnIndex(asked[0] ?? [])]).toEqual([filters, asked[0], true]);
      }
    }
  });

  it('uses nothing that a server without transactions and pipelines lacks', async () => {
    await open();
    await callEach();
    const allowed = ['find', 'aggregate', 'insert', 'update', 'delete', 'listIndexes', 'createIndexes', 'drop'];
    expect(set.seen.map((command) => Object.keys(command)[0]).filter((name) => !allowed.includes(name ?? ''))).toEqual(
      [],
    );
    for (const command of set.seen) {
      expect(command).not.toHaveProperty('startTransaction');
      for (const { u, arrayFilters } of command['updates'] ?? []) {
        expect(Array.isArray(u)).toBe(false);
        expect(arrayFilters).toBeUndefined();
      }
      // Counting needs these stages.
      for (const stage of command['pipeline'] ?? []) expect(['$match', '$group']).toContain(Object.keys(stage)[0]);
    }
  });

  it('decides the time of leases, not the clock of the caller', async () => {
    await open();
    const claim = { name: 'n', holder: 'h', ttlMs: 60_000, data: null };
    expect(await store.leases.acquire('k', claim)).toBe(true);
    expect(await store.leases.acquire('k', { ...claim, holder: 'other' })).toBe(false);
    set.faults.clockAheadMs = 61_000;
    expect(await leaseOf(store.leases, 'k', 'n')).toBeUndefined();
    expect(await store.leases.acquire('k', { ...claim, holder: 'other' })).toBe(true);
  });

  it('is used at once after it elects another primary: refused writes are sent there, once', async () => {
    await open();
    for (let round = 1; round <= 3; round += 1) {
      set.failOver();
      expect(await persist(() => collection.insert([{ id: `i${round}`, fields: { n: round } }]))).toEqual([
        `i${round}`,
      ]);
      await persist(() => collection.write([{ id: 'a', position: round, fields: {} }]));
      expect((await persist(() => collection.get('a')))?.position).toBe(round);
      expect((await persist(() => collection.get(`i${round}`)))?.fields).toEqual({ n: round });
      const claim = { name: 'n', holder: 'h', ttlMs: 60_000, data: round };
      expect(await persist(() => store.leases.acquire('k', claim))).toBe(true);
    }
    expect(await collection.list(undefined, 100)).toHaveLength(4);
  });

  it('loses no acknowledged write through elections under load', async () => {
    await open();
    const acknowledged: string[] = [];
    let over = false;
    const writers = [0, 1, 2].map(async (writer) => {
      for (let at = 0; !over; at += 1) {
        const id = `${writer}-${at}`;
        try {
          await collection.write([{ id, position: at, fields: { n: at } }]);
          acknowledged.push(id);
        } catch (error) {
          expect(codeOf(error)).toBe('unavailable');
          await delay(10);
        }
      }
    });
    for (let election = 0; election < 3; election += 1) {
      await delay(150);
      set.failOver();
    }
    const before = acknowledged.length;
    await expect.poll(() => acknowledged.length, { timeout: 20_000 }).toBeGreaterThan(before + 10);
    over = true;
    await Promise.all(writers);
    expect((await collection.getMany(acknowledged)).map(({ id }) => id)).toEqual(acknowledged);
  });

  it('gives a repeated write the answer of the first try when that answer is lost', async () => {
    await open();
    for (let round = 0; round < 2; round += 1) {
      set.faults.loseAnswers = 1;
      expect(await collection.insert([{ id: `i${round}`, fields: { n: round } }])).toEqual([`i${round}`]);
      set.faults.loseAnswers = 1;
      await collection.write([{ id: `i${round}`, position: 1, fields: { n: -1 } }]);
      expect((await collection.get(`i${round}`))?.fields).toEqual({ n: -1 });
    }
  });

  it('is unavailable without retryable writes when an answer is lost or the primary changed, and then works', async () => {
    set.faults.sessions = false;
    await open();
    set.faults.loseAnswers = 1;
    await expect(collection.insert([{ id: 'a', fields: {} }])).rejects.toMatchObject({ code: 'unavailable' });
    expect((await persist(() => collection.get('a')))?.id).toBe('a');
    set.failOver();
    await expect(collection.insert([{ id: 'b', fields: {} }])).rejects.toMatchObject({ code: 'unavailable' });
    expect(await persist(() => collection.insert([{ id: 'b', fields: {} }]))).toEqual(['b']);
  });

  it('is unavailable when no majority confirms a write in time, as it may be rolled back', async () => {
    await open();
    const calls: readonly (() => Promise<unknown>)[] = [
      () => collection.write([{ id: 'a', position: 1, fields: {} }]),
      () => collection.write([{ id: 'a', position: 2, fields: {} }]),
      () => collection.set([{ id: 's', fields: {} }]),
      () => collection.insert([{ id: 'b', fields: {} }]),
      () => store.saveCheckpoint('p', 1, { commit: 1, prepare: 1, anchors: [] }),
      () => store.saveCheckpoint('p', 1, { commit: 2, prepare: 1, anchors: [] }),
      () => store.activate('p', 1),
      () => store.leases.acquire('k', { name: 'n', holder: 'h', ttlMs: 60_000, data: 1 }),
      () => collection.remove(['s']),
    ];
    for (const call of calls) {
      set.faults.noMajority = 1;
      await expect(call()).rejects.toMatchObject({ code: 'unavailable' });
      expect(set.faults.noMajority).toBe(0);
    }
  });
});
