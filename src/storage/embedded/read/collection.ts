/**
 * One physical collection: reads, and guarded and unguarded writes with their index entries. The `read-store.ts` beside
 * it creates collections, and `group-entries.ts` keeps their index. Implements `read-store.ts` (Collection).
 */
import { yieldToEventLoop } from '../../../kernel/background.js';
import { bounds } from '../../bounds.js';
import { assertQuery, placeIn } from '../../group-index.js';
import type { Collection, CollectionSpec, Fields, StoredDocument } from '../../read-store.js';
import type { Durability } from '../environment.js';
import { tuning } from '../tuning.js';
import { decodeDocument, documentPosition, encodeDocument } from './document-codec.js';
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

function putIfNewer(operation: Operation, { id, position, fields }: StoredDocument): void {
  const old = operation.batch.get('documents', documentKey(operation.state.number, id));
  if (old === undefined || position > documentPosition(old)) replace(operation, id, position, old, fields);
}

/** Runs an operation on parts of a list, in order. All are queued at once, to share a flush where possible. */
function createWriter(run: RunWrite, spec: CollectionSpec, state: CollectionState) {
  return async <T, R>(
    all: readonly T[],
    operation: (one: Operation, part: readonly T[]) => R,
    durability?: Durability,
  ): Promise<R[]> => {
    const parts: Promise<R>[] = [];
    for (let start = 0; start < all.length; start += writesPerOperation) {
      const part = all.slice(start, start + writesPerOperation);
      const write = (batch: ReadBatch): R => {
        if (state.dropped) throw new Error(`collection ${spec.name} version ${spec.version} was dropped`);
        const tally: Tally = new Map();
        const outcome = operation({ batch, tally, spec, state }, part);
        applyTally(batch, tally);
        return outcome;
      };
      parts.push(run(write, durability));
    }
    const outcomes = await Promise.allSettled(parts);
    return outcomes.map((outcome) => {
      if (outcome.status === 'rejected') throw outcome.reason;
      return outcome.value;
    });
  };
}

export function createCollection(
  environment: ReadEnvironment,
  run: RunWrite,
  spec: CollectionSpec,
  state: CollectionState,
): Collection {
  const inParts = createWriter(run, spec, state);
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
    async write(documents) {
      await inParts(
        documents,
        (operation, part) => {
          for (const one of part) putIfNewer(operation, one);
        },
        // After a machine crash, lost writes are repeated from the log, starting at the checkpoint in the same store.
        'visible',
      );
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
  };
}
