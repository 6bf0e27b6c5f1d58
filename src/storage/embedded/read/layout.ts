/**
 * How LMDB holds the read store: the databases and the keys of documents. Index keys are in `index-keys.ts`.
 *
 * `documents` and `tombstones`: (collection number, id). `indexes.1`, `indexes.2` and so on: the index entries of one
 * collection each, so that those of a dropped one are removed at once; a free one is used again (`index-databases.ts`).
 * `collections`: name@version → definition. `leases`: (kind, name). `state`: checkpoints, pointers, counters. `counts`: see `counts.ts`.
 */
import { assertDocumentId } from '../../read-store-limits.js';
import { idText } from './index-keys.js';
import type { Environment } from '../environment.js';
import type { Batch, RunOptions } from '../group-writer.js';

export const readDatabases = {
  documents: 'bytes',
  tombstones: 'bytes',
  counts: 'bytes',
  collections: 'bytes',
  leases: 'bytes',
  state: 'bytes',
} as const;
/** The index entries of one collection. */
export type IndexDatabase = `indexes.${number}`;
export type ReadDatabase = keyof typeof readDatabases | IndexDatabase;
/** Databases that only queries read. */
export const unread = (database: ReadDatabase): boolean => database.startsWith('indexes');
export type ReadEnvironment = Environment<ReadDatabase>;
export type ReadBatch = Batch<ReadDatabase>;
/** Runs an operation in a group commit. @throws ServiceError `unavailable` unless it became durable */
export type RunWrite = <T>(operation: (batch: ReadBatch) => T, options?: RunOptions) => Promise<T>;

/** The value of entries that need only a key. */
export const present = Buffer.from([1]);

export function collectionPrefix(collection: number): Buffer {
  const prefix = Buffer.allocUnsafe(4);
  prefix.writeUInt32BE(collection, 0);
  return prefix;
}

/** Key of a document, as latin-1 text. @throws RangeError on an empty id or one that is too long */
export function documentKey(collection: number, id: string): string {
  assertDocumentId(id);
  const prefix = String.fromCharCode(
    collection >>> 24,
    (collection >>> 16) & 255,
    (collection >>> 8) & 255,
    collection & 255,
  );
  return prefix + idText(id);
}

export const idOfKey = (key: Buffer): string => key.toString('utf8', 4);

/** All keys that start with `prefix`; the byte after it is never 0xff. */
export function within(prefix: Buffer): { from: Buffer; to: Buffer } {
  return { from: prefix, to: Buffer.concat([prefix, Buffer.from([0xff])]) };
}

/** The smallest key after `key`. */
export const justAbove = (key: Buffer): Buffer => Buffer.concat([key, Buffer.from([0])]);
