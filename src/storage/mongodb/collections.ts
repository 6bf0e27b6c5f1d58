/**
 * The collections of the read store on MongoDB: opened by name and version with their indexes, read, written and dropped.
 * Guarded writes are in `guarded-writes.ts`. Implements `read-store.ts` (collection, drop).
 */
import type { Collection as MongoCollection, Db, Filter } from 'mongodb';
import { assertQuery } from '../group-index.js';
import { assertDocumentId, assertSpec } from '../bounds.js';
import type { UntypedReadStore } from '../answer-unavailable.js';
import type { Collection, CollectionSpec, GroupRange, IndexSpec, StoredDocument } from '../read-store.js';
import { batches, byIds } from './batches.js';
import { decodeDocument, encodeDocument, withoutPlace, type MongoDocument } from './document-codec.js';
import { duplicatesIn, isMissing } from './failures.js';
import { applyGuarded } from './guarded-writes.js';
import { ensureIndexes, type IndexKey } from './indexes.js';
import { reading } from './tuning.js';

const whole = { ...reading, projection: withoutPlace } as const;

/** A single group is compared directly, like an id (`batches.ts`). */
function inRange({ groups, from, below, times }: GroupRange): Filter<MongoDocument> {
  const [first] = groups;
  const order = { ...(from !== undefined && { $gte: from }), ...(below !== undefined && { $lt: below }) };
  const time = {
    ...(times?.from !== undefined && { $gte: times.from }),
    ...(times?.to !== undefined && { $lte: times.to }),
  };
  return {
    groups: first !== undefined && groups.length === 1 ? first : { $all: [...groups] },
    ...((from ?? below) !== undefined && { order }),
    ...((times?.from ?? times?.to) !== undefined && { time }),
  };
}

function createCollection(spec: CollectionSpec, documents: MongoCollection<MongoDocument>): Collection {
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
        for (const document of found) byId.set(document._id, decodeDocument(document));
      }
      return ids.flatMap((id) => byId.get(id) ?? []);
    },
    async list(after, limit) {
      const filter = after === undefined ? {} : { _id: { $gt: after } };
      return (await documents.find(filter, { ...whole, sort: { _id: 1 }, limit }).toArray()).map(decodeDocument);
    },
    async find(query) {
      assertQuery(spec, query);
      const { skip = 0, limit } = query;
      const direction = query.direction === 'asc' ? 1 : -1;
      const sort = { order: direction, _id: direction } as const;
      return (await documents.find(inRange(query), { ...whole, sort, skip, limit }).toArray()).map(decodeDocument);
    },
    async count(range) {
      assertQuery(spec, range);
      return documents.countDocuments(inRange(range), reading);
    },
    write: (all) => applyGuarded(documents, spec.index, all),
    async set(all) {
      // The last document of an id wins, and a command must not contain an id twice.
      const newest = new Map(
        all.map(({ id, fields }) => [id, encodeDocument(spec.index, { id, position: 0, fields })]),
      );
      for (const part of batches([...newest.values()])) {
        const operations = part.map((replacement) => ({
          replaceOne: { filter: { _id: replacement._id }, replacement, upsert: true },
        }));
        await documents.bulkWrite(operations, { ordered: false });
      }
    },
    async insert(all) {
      const encoded = all.map(({ id, fields }) => encodeDocument(spec.index, { id, position: 0, fields }));
      const inserted: string[] = [];
      for (const part of batches(encoded)) {
        const inserting = documents.insertMany([...part], { ordered: false });
        const existing: readonly number[] = await inserting.then(() => [], duplicatesIn);
        inserted.push(...part.filter((_, index) => !existing.includes(index)).map(({ _id }) => _id));
      }
      return inserted;
    },
    async remove(ids) {
      for (const part of batches(ids)) await documents.deleteMany({ _id: { $in: [...part] } });
    },
  };
}

const physicalName = (name: string, version: number): string => `${name}__v${version}`;

const byGroup: IndexKey = { groups: 1, order: 1, _id: 1 };

/** The time comes after the order, so that a walk in this order filters by it without reading documents. */
const indexesOf = (index: IndexSpec | undefined): readonly IndexKey[] =>
  index === undefined ? [] : [index.time === undefined ? byGroup : { ...byGroup, time: 1 }];

/** Writes to a dropped collection are refused, because they would recreate it without its indexes. */
interface Opened {
  dropped: boolean;
}

function untilDropped(collection: Collection, state: Opened): Collection {
  const { name, version } = collection.spec;
  const guard =
    <A extends readonly unknown[], T>(method: (...args: A) => Promise<T>) =>
    async (...args: A): Promise<T> => {
      if (state.dropped) throw new Error(`collection ${name} version ${version} was dropped`);
      return method(...args);
    };
  return {
    ...collection,
    write: guard(collection.write),
    set: guard(collection.set),
    insert: guard(collection.insert),
  };
}

export function createCollections(db: Db): Pick<UntypedReadStore, 'collection' | 'drop'> {
  const opened = new Map<string, Opened>();

  async function open(spec: CollectionSpec): Promise<Collection> {
    assertSpec(spec);
    const name = physicalName(spec.name, spec.version);
    const documents = db.collection<MongoDocument>(name);
    await ensureIndexes(documents, indexesOf(spec.index));
    const existing = opened.get(name);
    const state = existing === undefined || existing.dropped ? { dropped: false } : existing;
    opened.set(name, state);
    return untilDropped(createCollection(spec, documents), state);
  }

  return {
    collection: open,
    async drop(name, version) {
      const physical = physicalName(name, version);
      const state = opened.get(physical);
      if (state !== undefined) state.dropped = true;
      try {
        await db.dropCollection(physical);
      } catch (error) {
        if (!isMissing(error)) throw error;
      }
    },
  };
}
