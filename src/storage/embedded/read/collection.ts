/**
 * One physical collection: reads, and guarded and unguarded writes with their index entries. Not its creation
 * (`collections.ts`) and not queries (`query-run.ts`). Implements `read-store.ts` (Collection).
 */
import { yieldToEventLoop } from '../../../kernel/background.js';
import type {
  Collection,
  CollectionSpec,
  Fields,
  Filter,
  GuardedWrite,
  Query,
  StoredDocument,
} from '../../read-store.js';
import {
  decodeDocument,
  decodeTombstone,
  documentPosition,
  encodeDocument,
  encodeTombstone,
} from './document-codec.js';
import type { Durability } from '../environment.js';
import type { RunOptions } from '../group-writer.js';
import { addTo, applyTally, totalKey, type Tally } from './counts.js';
import { replaceInFilling, writeIfMuch, type Filling } from './fill-indexes.js';
import { documentKeys, keepsKeys, type DocumentKeys } from './index-keys.js';
import {
  collectionPrefix,
  documentKey,
  justAbove,
  present,
  within,
  type IndexDatabase,
  type ReadBatch,
  type ReadEnvironment,
  type RunWrite,
} from './layout.js';
import type { OpenIndex } from './query-plan.js';
import { countMatching, load, runQuery, type QueryTarget } from './query-run.js';
import { tuning } from '../tuning.js';

/** The state of a physical collection, shared by everyone who opened it. */
export interface CollectionState {
  readonly number: number;
  readonly indexDatabase: IndexDatabase;
  indexes: readonly OpenIndex[];
  /** While indexes are being filled. */
  filling: Filling | undefined;
  /** False as long as it certainly has no tombstone, which saves a look for each write. */
  tombstones: boolean;
  dropped: boolean;
}

/** Writes of one call that share an operation; few, as operations of other callers wait for it. */
const writesPerOperation = 100;
const bulkWritesPerOperation = 250;
/** A call with more writes is bulk work that nobody waits for. */
const bulkWrites = 500;

/** The indexes whose fields change: most updates change few fields, and index keys are expensive to compute. */
function changedIndexes(
  state: CollectionState,
  before: Fields | undefined,
  after: Fields | undefined,
): readonly OpenIndex[] {
  if (before === undefined || after === undefined) return state.indexes;
  return state.indexes.filter((index) => !index.ready || !keepsKeys(index, before, after));
}

function putKeys(batch: ReadBatch, database: IndexDatabase, tally: Tally, { keys, groups }: DocumentKeys): void {
  for (const key of keys) batch.put(database, key, present);
  for (const group of groups) addTo(tally, group, 1);
}

/** A document that changes from `before` to `after`; undefined where there is none. */
interface FieldChange {
  readonly id: string;
  readonly before: Fields | undefined;
  readonly after: Fields | undefined;
}

/** Updates index entries and counts of the filled indexes. */
function replaceEntries(
  batch: ReadBatch,
  state: CollectionState,
  tally: Tally,
  { id, before, after }: FieldChange,
): void {
  const changed = changedIndexes(state, before, after);
  const ready = changed.every((index) => index.ready) ? changed : changed.filter((index) => index.ready);
  if (before === undefined && after !== undefined)
    return putKeys(batch, state.indexDatabase, tally, documentKeys(ready, id, after));
  const old = before === undefined ? undefined : documentKeys(ready, id, before);
  const next = after === undefined ? undefined : documentKeys(ready, id, after);
  const stays = new Set(old?.keys);
  for (const key of next?.keys ?? []) if (!stays.delete(key)) batch.put(state.indexDatabase, key, present);
  for (const key of stays) batch.remove(state.indexDatabase, key);
  for (const group of old?.groups ?? []) addTo(tally, group, -1);
  for (const group of next?.groups ?? []) addTo(tally, group, 1);
}

interface Replacement {
  readonly id: string;
  readonly key: string;
  readonly position: number;
  /** The stored document, encoded. */
  readonly old: Buffer | undefined;
  /** Undefined removes the document. */
  readonly fields: Fields | undefined;
  /** The document that the write was computed from. */
  readonly before?: StoredDocument | undefined;
}

/** A document is a function of the log up to its position, so `before` at the stored position saves decoding. */
function standingFields({ id, before }: Replacement, old: Buffer): Fields {
  if (before !== undefined && before.position > 0 && before.position === documentPosition(old)) return before.fields;
  return decodeDocument(id, old).fields;
}

function replace(batch: ReadBatch, state: CollectionState, tally: Tally, change: Replacement): void {
  const { id, key, position, old, fields } = change;
  if (state.indexes.length > 0 && (state.filling !== undefined || state.indexes.some(({ ready }) => ready))) {
    const fieldChange = { id, before: old === undefined ? undefined : standingFields(change, old), after: fields };
    replaceEntries(batch, state, tally, fieldChange);
    if (state.filling !== undefined) {
      replaceInFilling(batch, state.filling, state.number, id, fieldChange.before, fields);
    }
  }
  if (fields === undefined) batch.remove('documents', key);
  else batch.put('documents', key, encodeDocument(position, fields));
  const difference = (fields === undefined ? 0 : 1) - (old === undefined ? 0 : 1);
  if (difference !== 0) addTo(tally, totalKey(state.number), difference);
}

/** Writes without a guard, at position 0. */
function setFields(
  batch: ReadBatch,
  state: CollectionState,
  tally: Tally,
  id: string,
  fields: Fields | undefined,
): void {
  const key = documentKey(state.number, id);
  replace(batch, state, tally, { id, key, position: 0, old: batch.get('documents', key), fields });
}

function applyGuarded(batch: ReadBatch, state: CollectionState, tally: Tally, write: GuardedWrite): boolean {
  const { id, position, before } = write;
  const key = documentKey(state.number, id);
  const old = batch.get('documents', key);
  const tombstone = state.tombstones ? batch.get('tombstones', key) : undefined;
  if (old !== undefined && position <= documentPosition(old)) return false;
  if (tombstone !== undefined && position <= decodeTombstone(tombstone)) return false;
  switch (write.kind) {
    case 'put':
      replace(batch, state, tally, { id, key, position, old, fields: write.fields, before });
      if (tombstone !== undefined) batch.remove('tombstones', key);
      return true;
    case 'delete':
      replace(batch, state, tally, { id, key, position, old, fields: undefined, before });
      batch.put('tombstones', key, encodeTombstone(position));
      state.tombstones = true;
      return true;
    default: {
      const never: never = write;
      throw new Error(`unknown write ${JSON.stringify(never)}`);
    }
  }
}

export function createCollection(
  environment: ReadEnvironment,
  run: RunWrite,
  spec: CollectionSpec,
  state: CollectionState,
): Collection {
  const target: QueryTarget = {
    environment,
    collection: state.number,
    indexDatabase: state.indexDatabase,
    get indexes() {
      return state.indexes;
    },
  };

  async function write<T>(
    operation: (batch: ReadBatch, tally: Tally) => T,
    options: Pick<RunOptions, 'bulk' | 'durability'> = {},
  ): Promise<T> {
    try {
      return await run((batch) => {
        if (state.dropped) throw new Error(`collection ${spec.name} version ${spec.version} was dropped`);
        const tally: Tally = new Map();
        const outcome = operation(batch, tally);
        applyTally(batch, tally);
        return outcome;
      }, options);
    } catch (error) {
      if (state.filling !== undefined) state.filling.spoiled = true;
      throw error;
    }
  }

  /** Runs the parts in order; all are queued at once, so that they share a flush where possible. */
  async function inParts<T, R>(
    all: readonly T[],
    operation: (batch: ReadBatch, tally: Tally, part: readonly T[]) => R,
    durability: Durability = 'flushed',
  ): Promise<R[]> {
    const bulk = all.length > bulkWrites;
    const size = bulk ? bulkWritesPerOperation : writesPerOperation;
    const parts: Promise<R>[] = [];
    for (let start = 0; start < all.length; start += size) {
      const part = all.slice(start, start + size);
      parts.push(write((batch, tally) => operation(batch, tally, part), { bulk, durability }));
    }
    const outcomes = await Promise.allSettled(parts);
    if (state.filling?.fromWrites === true) await writeIfMuch(run, state.filling);
    return outcomes.map((outcome) => {
      if (outcome.status === 'rejected') throw outcome.reason;
      return outcome.value;
    });
  }

  return {
    spec,
    async get(id) {
      return load(target, id);
    },
    async getMany(ids) {
      const documents: StoredDocument[] = [];
      for (const [index, id] of ids.entries()) {
        if (index > 0 && index % tuning.sliceEntries === 0) await yieldToEventLoop();
        const document = load(target, id);
        if (document !== undefined) documents.push(document);
      }
      return documents;
    },
    find: (query: Query) => runQuery(target, query),
    count: (where: readonly Filter[] = []) => countMatching(target, where),
    async write(writes) {
      const applied = await inParts(
        writes,
        (batch, tally, part) => part.filter((one) => applyGuarded(batch, state, tally, one)).length,
        // What a crash of the machine undoes is written again from the log, behind the checkpoint that is in the same store.
        'visible',
      );
      return applied.reduce((sum, count) => sum + count, 0);
    },
    async set(documents) {
      await inParts(documents, (batch, tally, part) => {
        for (const { id, fields } of part) setFields(batch, state, tally, id, fields);
      });
    },
    insert: (id, fields) =>
      write((batch, tally) => {
        const key = documentKey(state.number, id);
        if (batch.get('documents', key) !== undefined) return false;
        replace(batch, state, tally, { id, key, position: 0, old: undefined, fields });
        return true;
      }),
    async remove(ids) {
      await inParts(ids, (batch, tally, part) => {
        for (const id of part) setFields(batch, state, tally, id, undefined);
      });
    },
    async purgeTombstones(upTo) {
      let removed = 0;
      const { to, ...range } = within(collectionPrefix(state.number));
      let { from } = range;
      for (;;) {
        const slice = environment.entries('tombstones', { from, to, limit: tuning.sliceEntries });
        const last = slice.at(-1);
        if (last === undefined) return removed;
        const old = slice.filter(({ value }) => decodeTombstone(value) <= upTo).map(({ key }) => key);
        const counts = await inParts(old, (batch, _tally, keys) => {
          const still = keys.filter((key) => {
            const value = batch.get('tombstones', key);
            return value !== undefined && decodeTombstone(value) <= upTo;
          });
          for (const key of still) batch.remove('tombstones', key);
          return still.length;
        });
        removed += counts.reduce((sum, count) => sum + count, 0);
        from = justAbove(last.key);
      }
    },
  };
}
