/**
 * One collection of the read store on MongoDB. Guarded writes are in `guarded-writes.ts`, the translation of queries in
 * `query.ts`. Implements `read-store.ts` (Collection).
 */
import type { Collection as MongoCollection } from 'mongodb';
import type { Collection, CollectionSpec, Filter, Query, StoredDocument } from '../read-store.js';
import { assertDocumentId } from '../read-store-limits.js';
import { batches } from './batches.js';
import { decodeDocument, encodeDocument, withoutShadow, type MongoDocument } from './document-codec.js';
import { isDuplicate } from './failures.js';
import { applyGuarded } from './guarded-writes.js';
import { byIds, countFiltersOf, filterOf, sortOf } from './query.js';
import { reading } from './tuning.js';

const whole = { ...reading, projection: withoutShadow } as const;

function decodeAll(documents: readonly MongoDocument[]): readonly StoredDocument[] {
  return documents.flatMap((document) => decodeDocument(document) ?? []);
}

export function createCollection(spec: CollectionSpec, documents: MongoCollection<MongoDocument>): Collection {
  async function count(where: readonly Filter[] = [], sort: NonNullable<Query['sort']> = []): Promise<number> {
    const filters = countFiltersOf(where, sort, spec.indexes);
    const counts = await Promise.all(filters.map((filter) => documents.countDocuments(filter, reading)));
    return counts.reduce((sum, one) => sum + one, 0);
  }

  async function find({ where = [], sort = [], skip = 0, limit }: Query): Promise<readonly StoredDocument[]> {
    const page = await documents
      .find(filterOf(where, sort, spec.indexes), {
        ...reading,
        projection: withoutShadow,
        sort: sortOf(sort),
        skip,
        limit,
      })
      .toArray();
    return decodeAll(page);
  }

  return {
    spec,
    async get(id) {
      assertDocumentId(id);
      const document = await documents.findOne({ _id: id }, whole);
      return document === null ? undefined : decodeDocument(document);
    },
    async getMany(ids) {
      const byId = new Map<string, StoredDocument>();
      for (const part of batches([...new Set(ids)])) {
        const found = await documents.find(byIds(part), whole).toArray();
        for (const document of decodeAll(found)) byId.set(document.id, document);
      }
      return ids.flatMap((id) => byId.get(id) ?? []);
    },
    async find(query) {
      const { limit, skip = 0 } = query;
      if (!(limit >= 1)) throw new RangeError('a page has a limit of at least 1');
      const items = await find(query);
      // A page that is not full is the last one, unless it lies beyond the end.
      const isLast = items.length < limit && (items.length > 0 || skip === 0);
      return { items, total: isLast ? skip + items.length : await count(query.where, query.sort) };
    },
    count: (where) => count(where),
    write: (writes) => applyGuarded(documents, writes),
    async set(all) {
      // The last document of an id wins, and a command must not contain an id twice.
      const newest = new Map(all.map(({ id, fields }) => [id, encodeDocument(id, 0, fields)]));
      for (const part of batches([...newest.values()])) {
        const operations = part.map((replacement) => ({
          replaceOne: { filter: { _id: replacement._id }, replacement, upsert: true },
        }));
        await documents.bulkWrite(operations, { ordered: false });
      }
    },
    async insert(id, fields) {
      try {
        await documents.insertOne(encodeDocument(id, 0, fields));
        return true;
      } catch (error) {
        if (isDuplicate(error)) return false;
        throw error;
      }
    },
    async remove(ids) {
      for (const part of batches(ids)) await documents.deleteMany({ _id: { $in: [...part] }, live: true });
    },
    async purgeTombstones(upTo) {
      return (await documents.deleteMany({ live: false, position: { $lte: upTo } })).deletedCount;
    },
  };
}
