/**
 * One physical collection: reads, and guarded and unguarded writes with their index entries. The `read-store.ts` beside
 * it creates collections, and `group-entries.ts` keeps their index. Implements `read-store.ts` (Collection).
 */
import { yieldToEventLoop } from '../../../kernel/background.js';
import { unreachable } from '../../../kernel/errors.js';
import { bounds } from '../../bounds.js';
import { assertQuery, placeIn } from '../../group-index.js';
import type { Collection, CollectionSpec, Fields, GuardedWrite, StoredDocument } from '../../read-store.js';
import type { Durability } from '../environment.js';
import { tuning } from '../tuning.js';
import {
  decodeDocument,
  decodeTombstone,
  documentPosition,
  encodeDocument,
  encodeTombstone,
} from './document-codec.js';
import { applyTally, countIn, findIds, moveEntries, type Tally } from './group-entries.js';
import {
  collectionPrefix,
  documentKey,
  idOfKey,
  justAbove,
  within,
  type ReadBatch,
  type ReadEnvironment,
  type RunWrite,
} from './layout.js';

/** The state of a physical collection, shared by everyone who opened it. */
export interface CollectionState {
  readonly number: number;
  /** False while it certainly has no tombstone, which saves a read per write. */
  tombstones: boolean;
  dropped: boolean;
}

/** Writes of one call that share an operation; few, because operations of other callers wait for it. */
const writesPerOperation = 100;

/** The changes of one operation. */
interface Operation {
  readonly batch: ReadBatch;
  readonly tally: Tally;
  readonly spec: CollectionSpec;
  readonly state: CollectionState;
}

/** @param old the stored document, encoded @param fields undefined removes the document */
function replace(
  { batch, tally, spec, state }: Operation,
  id: string,
  position: number,
  old: Buffer | undefined,
  fields: Fields | undefined,
): void {
  const key = documentKey(state.number, id);
  if (spec.index !== undefined) {
    const before = old === undefined ? undefined : placeIn(spec.index, decodeDocument(id, old).fields);
    const after = fields === undefined ? undefined : placeIn(spec.index, fields);
    moveEntries(batch, tally, state.number, id, before, after);
  }
  if (fields === undefined) batch.remove('documents', key);
  else batch.put('documents', key, encodeDocument(position, fields));
}

/** Unguarded writes, at position 0. */
function setFields(operation: Operation, id: string, fields: Fields | undefined): void {
  const old = operation.batch.get('documents', documentKey(operation.state.number, id));
  replace(operation, id, 0, old, fields);
}

function applyGuarded(operation: Operation, write: GuardedWrite): boolean {
  const { batch, state } = operation;
  const { id, position } = write;
  const key = documentKey(state.number, id);
  const old = batch.get('documents', key);
  const tombstone = state.tombstones ? batch.get('tombstones', key) : undefined;
  if (old !== undefined && position <= documentPosition(old)) return false;
  if (tombstone !== undefined && position <= decodeTombstone(tombstone)) return false;
  switch (write.kind) {
    case 'put':
      replace(operation, id, position, old, write.fields);
      if (tombstone !== undefined) batch.remove('tombstones', key);
      return true;
    case 'delete':
      replace(operation, id, position, old, undefined);
      batch.put('tombstones', key, encodeTombstone(position));
      state.tombstones = true;
      return true;
    default:
      return unreachable(write);
  }
}

/** Writes to a collection, as operations in the environment's queue. */
function createWriter(run: RunWrite, spec: CollectionSpec, state: CollectionState) {
  function write<T>(operation: (one: Operation) => T, durability?: Durability): Promise<T> {
    return run((batch) => {
      if (state.dropped) throw new Error(`collection ${spec.name} version ${spec.version} was dropped`);
      const tally: Tally = new Map();
      const outcome = operation({ batch, tally, spec, state });
      applyTally(batch, tally);
      return outcome;
    }, durability);
  }

  /** Runs the parts in order; all are queued at once, to share a flush where possible. */
  async function inParts<T, R>(
    all: readonly T[],
    operation: (one: Operation, part: readonly T[]) => R,
    durability?: Durability,
  ): Promise<R[]> {
    const parts: Promise<R>[] = [];
    for (let start = 0; start < all.length; start += writesPerOperation) {
      const part = all.slice(start, start + writesPerOperation);
      parts.push(write((one) => operation(one, part), durability));
    }
    const outcomes = await Promise.allSettled(parts);
    return outcomes.map((outcome) => {
      if (outcome.status === 'rejected') throw outcome.reason;
      return outcome.value;
    });
  }

  return { write, inParts };
}

type Writer = ReturnType<typeof createWriter>;

/** Removes the tombstones up to a position. @returns how many */
async function purgeTombstones(
  environment: ReadEnvironment,
  state: CollectionState,
  { inParts }: Writer,
  upTo: number,
): Promise<number> {
  const isOld = (value: Buffer): boolean => decodeTombstone(value) <= upTo;
  let removed = 0;
  const { to, ...range } = within(collectionPrefix(state.number));
  let { from } = range;
  for (;;) {
    const slice = environment.entries('tombstones', { from, to, limit: tuning.sliceEntries });
    const last = slice.at(-1);
    if (last === undefined) return removed;
    const old = slice.filter(({ value }) => isOld(value)).map(({ key }) => key);
    const counts = await inParts(old, ({ batch }, keys) => {
      const still = keys.filter((key) => {
        const value = batch.get('tombstones', key);
        return value !== undefined && isOld(value);
      });
      for (const key of still) batch.remove('tombstones', key);
      return still.length;
    });
    removed += counts.reduce((sum, count) => sum + count, 0);
    from = justAbove(last.key);
    await yieldToEventLoop();
  }
}

export function createCollection(
  environment: ReadEnvironment,
  run: RunWrite,
  spec: CollectionSpec,
  state: CollectionState,
): Collection {
  const writer = createWriter(run, spec, state);
  const { inParts } = writer;
  const load = (id: string): StoredDocument | undefined => {
    const value = environment.get('documents', documentKey(state.number, id));
    return value === undefined ? undefined : decodeDocument(id, value);
  };

  async function getMany(ids: readonly string[]): Promise<readonly StoredDocument[]> {
    const documents: StoredDocument[] = [];
    for (const [index, id] of ids.entries()) {
      if (index > 0 && index % tuning.sliceEntries === 0) await yieldToEventLoop();
      const document = load(id);
      if (document !== undefined) documents.push(document);
    }
    return documents;
  }

  return {
    spec,
    async get(id) {
      return load(id);
    },
    getMany,
    async list(after, limit) {
      const { from, to } = within(collectionPrefix(state.number));
      const start = after === undefined ? from : justAbove(Buffer.from(documentKey(state.number, after), 'latin1'));
      const documents: StoredDocument[] = [];
      for (let next = start; ;) {
        // Also between the calls of a walk through the whole collection.
        await yieldToEventLoop();
        // A slice is also bounded in bytes.
        const range = { from: next, to, limit: limit - documents.length, maxBytes: bounds.itemBytes };
        const slice = environment.entries('documents', range);
        for (const { key, value } of slice) documents.push(decodeDocument(idOfKey(key), value));
        const last = slice.at(-1);
        if (last === undefined || documents.length >= limit) return documents;
        next = justAbove(last.key);
      }
    },
    async find(query) {
      assertQuery(spec, query);
      return getMany(await findIds(environment, state.number, query));
    },
    async count(range) {
      assertQuery(spec, range);
      return countIn(environment, state.number, range);
    },
    async write(writes) {
      const applied = await inParts(
        writes,
        (operation, part) => part.filter((one) => applyGuarded(operation, one)).length,
        // After a machine crash, lost writes are repeated from the log, starting at the checkpoint in the same store.
        'visible',
      );
      return applied.reduce((sum, count) => sum + count, 0);
    },
    async set(documents) {
      await inParts(documents, (operation, part) => {
        for (const { id, fields } of part) setFields(operation, id, fields);
      });
    },
    async insert(documents) {
      const inserted = await inParts(documents, (operation, part) =>
        part.flatMap(({ id, fields }) => {
          if (operation.batch.get('documents', documentKey(state.number, id)) !== undefined) return [];
          replace(operation, id, 0, undefined, fields);
          return [id];
        }),
      );
      return inserted.flat();
    },
    async remove(ids) {
      await inParts(ids, (operation, part) => {
        for (const id of part) setFields(operation, id, undefined);
      });
    },
    purgeTombstones: (upTo) => purgeTombstones(environment, state, writer, upTo),
  };
}
