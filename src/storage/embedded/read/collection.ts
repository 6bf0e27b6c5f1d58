/**
 * One physical collection: reads, guarded and unguarded writes with their index entries. Not its creation
 * (`collections`), not queries (`query-run`). Implements `read-store.ts` (Collection).
 */
import { yieldToEventLoop } from '../../../kernel/background.js';
import { limits } from '../../../kernel/limits.js';
import { scalarEquals } from '../../field-values.js';
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
import { documentKeys, indexPrefix } from './index-keys.js';
import {
  collectionPrefix,
  documentKey,
  idOfKey,
  justAbove,
  present,
  within,
  type ReadBatch,
  type ReadEnvironment,
  type RunWrite,
} from './layout.js';
import type { IndexDefinition } from './query-plan.js';
import { countMatching, runQuery, type QueryTarget } from './query-run.js';

/** The shared, changing truth about a physical collection. */
export interface CollectionState {
  readonly number: number;
  indexes: readonly IndexDefinition[];
  dropped: boolean;
}

/** Writes of one call that share an operation: short, as other callers' operations wait behind it. */
const writesPerOperation = 100;

/** The index keys of a document; also what back-filling an index uses. */
export function keysOf(
  state: CollectionState,
  indexes: readonly IndexDefinition[],
  id: string,
  fields: Fields,
): Buffer[] {
  return indexes.flatMap((index) => documentKeys(indexPrefix(state.number, index.number), index.fields, id, fields));
}

/** All but those whose fields stay as they are: most updates touch few of them, and keys are dear to make. */
function changedIndexes(
  state: CollectionState,
  before: Fields | undefined,
  after: Fields | undefined,
): readonly IndexDefinition[] {
  if (before === undefined || after === undefined) return state.indexes;
  // Lists never count as the same; they are made anew on both sides.
  const stays = (field: string): boolean => (before[field] ?? null) === (after[field] ?? null);
  return state.indexes.filter((index) => !index.ready || !index.fields.every(stays));
}

function replace(
  batch: ReadBatch,
  state: CollectionState,
  id: string,
  position: number,
  fields: Fields | undefined,
): void {
  const key = documentKey(state.number, id);
  const old = state.indexes.length === 0 ? undefined : batch.get('documents', key);
  const before = old === undefined ? undefined : decodeDocument(id, old).fields;
  const concerned = changedIndexes(state, before, fields);
  const wanted = new Map<string, Buffer>();
  if (fields !== undefined) {
    for (const entry of keysOf(state, concerned, id, fields)) wanted.set(entry.toString('latin1'), entry);
  }
  if (before !== undefined) {
    for (const entry of keysOf(state, concerned, id, before)) {
      // An entry that stays need not be written again, unless its index is still being filled.
      if (!wanted.delete(entry.toString('latin1'))) batch.remove('indexes', entry);
    }
    if (fields !== undefined) {
      const filling = concerned.filter(({ ready }) => !ready);
      for (const entry of keysOf(state, filling, id, fields)) wanted.set(entry.toString('latin1'), entry);
    }
  }
  for (const entry of wanted.values()) batch.put('indexes', entry, present);
  if (fields === undefined) batch.remove('documents', key);
  else batch.put('documents', key, encodeDocument(position, fields));
}

function standingPosition(batch: ReadBatch, key: Buffer): number {
  const document = batch.get('documents', key);
  const tombstone = batch.get('tombstones', key);
  return Math.max(
    document === undefined ? -1 : documentPosition(document),
    tombstone === undefined ? -1 : decodeTombstone(tombstone),
  );
}

function applyGuarded(batch: ReadBatch, state: CollectionState, write: GuardedWrite): boolean {
  const key = documentKey(state.number, write.id);
  if (write.position <= standingPosition(batch, key)) return false;
  switch (write.kind) {
    case 'put':
      replace(batch, state, write.id, write.position, write.fields);
      batch.remove('tombstones', key);
      return true;
    case 'delete':
      replace(batch, state, write.id, write.position, undefined);
      batch.put('tombstones', key, encodeTombstone(write.position));
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
    get indexes() {
      return state.indexes;
    },
  };

  function load(id: string): StoredDocument | undefined {
    const value = environment.get('documents', documentKey(state.number, id));
    return value === undefined ? undefined : decodeDocument(id, value);
  }

  function write<T>(operation: (batch: ReadBatch) => T): Promise<T> {
    return run((batch) => {
      if (state.dropped) throw new Error(`collection ${spec.name} version ${spec.version} was dropped`);
      return operation(batch);
    });
  }

  /** In order, a part at a time; all parts are queued at once, so that they share a flush where they can. */
  async function inParts<T, R>(
    all: readonly T[],
    operation: (batch: ReadBatch, part: readonly T[]) => R,
  ): Promise<R[]> {
    const parts: Promise<R>[] = [];
    for (let start = 0; start < all.length; start += writesPerOperation) {
      const part = all.slice(start, start + writesPerOperation);
      parts.push(write((batch) => operation(batch, part)));
    }
    const outcomes = await Promise.allSettled(parts);
    return outcomes.map((outcome) => {
      if (outcome.status === 'rejected') throw outcome.reason;
      return outcome.value;
    });
  }

  return {
    spec,
    async get(id) {
      return load(id);
    },
    async getMany(ids) {
      const found: StoredDocument[] = [];
      for (const [index, id] of ids.entries()) {
        if (index > 0 && index % limits.storage.sliceEntries === 0) await yieldToEventLoop();
        const document = load(id);
        if (document !== undefined) found.push(document);
      }
      return found;
    },
    find: (query: Query) => runQuery(target, query),
    count: (where: readonly Filter[] = []) => countMatching(target, where),
    async write(writes) {
      const applied = await inParts(
        writes,
        (batch, part) => part.filter((one) => applyGuarded(batch, state, one)).length,
      );
      return applied.reduce((sum, count) => sum + count, 0);
    },
    async set(documents) {
      await inParts(documents, (batch, part) => {
        for (const { id, fields } of part) replace(batch, state, id, 0, fields);
      });
    },
    insert: (id, fields) =>
      write((batch) => {
        if (batch.get('documents', documentKey(state.number, id)) !== undefined) return false;
        replace(batch, state, id, 0, fields);
        return true;
      }),
    updateIf: (id, expected, set) =>
      write((batch) => {
        const value = batch.get('documents', documentKey(state.number, id));
        if (value === undefined) return false;
        const { position, fields } = decodeDocument(id, value);
        if (!Object.entries(expected).every(([field, wanted]) => scalarEquals(fields[field], wanted))) return false;
        const changes = Object.entries(set).filter((entry) => entry[1] !== undefined);
        replace(batch, state, id, position, { ...fields, ...(Object.fromEntries(changes) as Fields) });
        return true;
      }),
    async remove(ids) {
      await inParts(ids, (batch, part) => {
        for (const id of part) replace(batch, state, id, 0, undefined);
      });
    },
    async purgeTombstones(upTo) {
      let removed = 0;
      const { to, ...range } = within(collectionPrefix(state.number));
      let { from } = range;
      for (;;) {
        const slice = environment.entries('tombstones', { from, to, limit: limits.storage.sliceEntries });
        const last = slice.at(-1);
        if (last === undefined) return removed;
        const old = slice.filter(({ value }) => decodeTombstone(value) <= upTo).map(({ key }) => key);
        const counts = await inParts(old, (batch, keys) => {
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

/** Adds the entries of indexes that are being filled, for the documents from `from` on. Returns where to go on. */
export function fillIndexes(
  environment: ReadEnvironment,
  batch: ReadBatch,
  state: CollectionState,
  from: Buffer,
): Buffer | undefined {
  const filling = state.indexes.filter(({ ready }) => !ready);
  const { to } = within(collectionPrefix(state.number));
  const slice = environment.keys('documents', { from, to, limit: writesPerOperation });
  for (const key of slice) {
    const value = batch.get('documents', key);
    if (value === undefined) continue;
    const { id, fields } = decodeDocument(idOfKey(key), value);
    for (const entry of keysOf(state, filling, id, fields)) batch.put('indexes', entry, present);
  }
  const last = slice.at(-1);
  return last === undefined || slice.length < writesPerOperation ? undefined : justAbove(last);
}
