/**
 * One collection of the read store on MongoDB. Guarded writes are in `guarded-writes.ts`. Implements `read-store.ts` (Collection).
 */
import type { Collection as MongoCollection, Filter } from 'mongodb';
import { assertQuery } from '../group-index.js';
import type { Collection, CollectionSpec, GroupRange, StoredDocument } from '../read-store.js';
import { assertDocumentId } from '../read-store-limits.js';
import { batches, byIds } from './batches.js';
import { decodeDocument, encodeDocument, withoutPlace, type MongoDocument } from './document-codec.js';
import { isDuplicate } from './failures.js';
import { applyGuarded } from './guarded-writes.js';
import { reading } from './tuning.js';

const whole = { ...reading, projection: withoutPlace } as const;

function decodeAll(documents: readonly MongoDocument[]): readonly StoredDocument[] {
  return documents.flatMap((document) => decodeDocument(document) ?? []);
}

/** A single group is compared directly, as an id is (`batches.ts`). */
function inRange({ groups, from, below }: GroupRange): Filter<MongoDocument> {
  const [first] = groups;
  const order = { ...(from !== undefined && { $gte: from }), ...(below !== undefined && { $lt: below }) };
  return {
    groups: first !== undefined && groups.length === 1 ? first : { $all: [...groups] },
    ...((from ?? below) !== undefined && { order }),
  };
}

export function createCollection(spec: CollectionSpec, documents: MongoCollection<MongoDocument>): Collection {
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
    async list(after, limit) {
      const filter = after === undefined ? { live: true } : { live: true, _id: { $gt: after } };
      return decodeAll(await documents.find(filter, { ...whole, sort: { _id: 1 }, limit }).toArray());
    },
    async find(query) {
      assertQuery(spec, query);
      const { skip = 0, limit } = query;
      const direction = query.direction === 'asc' ? 1 : -1;
      const sort = { order: direction, _id: direction } as const;
      return decodeAll(await documents.find(inRange(query), { ...whole, sort, skip, limit }).toArray());
    },
    async count(range) {
      assertQuery(spec, range);
      return documents.countDocuments(inRange(range), reading);
    },
    write: (writes) => applyGuarded(documents, spec.index, writes),
    async set(all) {
      // The last document of an id wins, and a command must not contain an id twice.
      const newest = new Map(all.map(({ id, fields }) => [id, encodeDocument(spec.index, id, 0, fields)]));
      for (const part of batches([...newest.values()])) {
        const operations = part.map((replacement) => ({
          replaceOne: { filter: { _id: replacement._id }, replacement, upsert: true },
        }));
        await documents.bulkWrite(operations, { ordered: false });
      }
    },
    async insert(id, fields) {
      try {
        await documents.insertOne(encodeDocument(spec.index, id, 0, fields));
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
