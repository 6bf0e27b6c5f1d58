/**
 * The layout of the read store in LMDB: the databases, and the keys of documents.
 *
 * `documents`: (collection number, id). `index` and `counts`: see `group-entries.ts`. `collections`:
 * name@version → number. `state`: checkpoints, pointers, counters.
 */
import { assertDocumentId } from '../../bounds.js';
import type { Durability, Environment } from '../environment.js';
import type { Batch } from '../group-writer.js';

export const readDatabases = {
  documents: 'bytes',
  index: 'bytes',
  counts: 'bytes',
  collections: 'bytes',
  state: 'bytes',
} as const;
export type ReadDatabase = keyof typeof readDatabases;
export type ReadEnvironment = Environment<ReadDatabase>;
export type ReadBatch = Batch<ReadDatabase>;
/** Runs an operation in a group commit. @throws ServiceError `unavailable` unless it became durable */
export type RunWrite = <T>(operation: (batch: ReadBatch) => T, durability?: Durability) => Promise<T>;

/** The value of entries that need only a key. */
export const present = Buffer.from([1]);

/** The prefix of all keys of a collection, as latin-1 text: one character per byte. */
export function collectionText(collection: number): string {
  return String.fromCharCode(collection >>> 24, (collection >>> 16) & 255, (collection >>> 8) & 255, collection & 255);
}

export const collectionPrefix = (collection: number): Buffer => Buffer.from(collectionText(collection), 'latin1');

/** The bytes of a document's id, as latin-1 text; they end its key. */
export const idText = (id: string): string => (/^[ -~]*$/.test(id) ? id : Buffer.from(id, 'utf8').toString('latin1'));

/** The key of a document, as latin-1 text. @throws RangeError on an empty id or one that is too long */
export function documentKey(collection: number, id: string): string {
  assertDocumentId(id);
  return collectionText(collection) + idText(id);
}

export const idOfKey = (key: Buffer): string => key.toString('utf8', 4);

/** All keys that start with `prefix`; the byte after it is never 0xff. */
export function within(prefix: Buffer): { from: Buffer; to: Buffer } {
  return { from: prefix, to: Buffer.concat([prefix, Buffer.from([0xff])]) };
}

/** The smallest key after `key`. */
export const justAbove = (key: Buffer): Buffer => Buffer.concat([key, Buffer.from([0])]);
