/**
 * The collections of the read store on MongoDB: opens them by name and version with their indexes, and drops them.
 * Implements `read-store.ts` (collection, drop).
 */
import type { Db } from 'mongodb';
import {
  answerUnavailable,
  answeringCollection,
  answeringCollections,
  impatientCollection,
} from '../answer-unavailable.js';
import { assertSpec } from '../read-store-limits.js';
import type { Collection, CollectionSpec, ReadStore } from '../read-store.js';
import { createCollection } from './collection.js';
import type { MongoDocument } from './document-codec.js';
import { isMissing } from './failures.js';
import { ensureIndexes, type IndexKey } from './indexes.js';
import { tuning } from './tuning.js';

const physicalName = (name: string, version: number): string => `${name}__v${version}`;

/** For walks by id and the purge of tombstones, and for groups. */
const byId: IndexKey = { live: 1, _id: 1 };
const byGroup: IndexKey = { groups: 1, order: 1, _id: 1 };

/** Writes to a dropped collection are refused, because they would create it again without its indexes. */
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

export function createCollections(db: Db): Pick<ReadStore, 'collection' | 'drop'> {
  const opened = new Map<string, Opened>();

  async function open(spec: CollectionSpec): Promise<Collection> {
    assertSpec(spec);
    const name = physicalName(spec.name, spec.version);
    const documents = db.collection<MongoDocument>(name);
    await ensureIndexes(documents, spec.index === undefined ? [byId] : [byId, byGroup]);
    const existing = opened.get(name);
    const state = existing === undefined || existing.dropped ? { dropped: false } : existing;
    opened.set(name, state);
    return untilDropped(createCollection(spec, documents), state);
  }

  return {
    collection: answeringCollections(async (spec) =>
      impatientCollection(answeringCollection(await open(spec)), tuning.readMs),
    ),
    drop: answerUnavailable(async (name: string, version: number) => {
      const physical = physicalName(name, version);
      const state = opened.get(physical);
      if (state !== undefined) state.dropped = true;
      try {
        await db.dropCollection(physical);
      } catch (error) {
        if (!isMissing(error)) throw error;
      }
    }),
  };
}
