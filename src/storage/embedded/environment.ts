/**
 * One LMDB environment: short synchronous reads, and durable transactions written and flushed on a library thread, so
 * the event loop never waits for the disk. Not a place for what keys and values mean, nor for deciding: `group-writer`
 * does that. Implements `docs/architecture.md` ("Durable before acknowledged").
 *
 * Why asynchronous batches with `overlappingSync: false`: LMDB then flushes data and meta page inside the commit, so
 * what resolved is on disk, and a reader never sees what is not. With overlapping sync a commit is visible before it is
 * flushed, and a failed flush cannot be taken back.
 */
import { join } from 'node:path';
import { open, type Database, type RootDatabase } from 'lmdb';
import { errorText } from '../../kernel/errors.js';
import type { Logger } from '../../kernel/logger.js';
import { commitBytes, createSpaceReserve } from './space-reserve.js';

export interface Change<Name extends string> {
  readonly database: Name;
  /** Bytes, or the same bytes as latin-1 text, which is lighter to keep. */
  readonly key: Buffer | string;
  /** Undefined removes the key. Never empty. */
  readonly value: Buffer | undefined;
}

export type CommitOutcome =
  | { readonly kind: 'durable' }
  | { readonly kind: 'not_written'; readonly cause: string }
  /** The meta page may or may not have reached the disk. */
  | { readonly kind: 'unknown'; readonly cause: string };

export interface Range {
  /** Inclusive. */
  readonly from: Buffer;
  /** Exclusive. */
  readonly to: Buffer;
  readonly reverse?: boolean;
  readonly limit: number;
}

export interface Entry {
  readonly key: Buffer;
  readonly value: Buffer;
}

export interface TextEntry {
  readonly key: Uint8Array;
  readonly text: string;
}

/** What the values of a database are: text is UTF-8 that scans hand out as strings, without a copy of its bytes. */
export type ValueKind = 'bytes' | 'text';

export interface Environment<Name extends string> {
  get(database: Name, key: Buffer): Buffer | undefined;
  /** Ended early once `maxBytes` of values have been read: at least one entry if there is any. */
  entries(database: Name, range: Range & { readonly maxBytes?: number }): Entry[];
  keys(database: Name, range: Range): Buffer[];
  /** How many keys a range has; the library counts a million in some tens of milliseconds. */
  count(database: Name, range: { readonly from: Buffer; readonly to: Buffer }): number;
  /** The key that is `offset` keys into the range, undefined past its end: much cheaper than to read those before it. */
  keyAt(database: Name, range: Omit<Range, 'limit'>, offset: number): Buffer | undefined;
  /** Values of a text database, ended early once about `maxBytes` have been read: at least one entry if there is any. */
  texts(database: Name, range: Range & { readonly maxBytes: number }): TextEntry[];
  /** Writes all changes as one transaction. One at a time: the caller waits for the outcome before the next. */
  commit(changes: readonly Change<Name>[]): Promise<CommitOutcome>;
  /** Throws what the library throws when the environment cannot be read. */
  probe(): void;
  close(): Promise<void>;
}

interface Handles<Name extends string> {
  readonly root: RootDatabase<Buffer, Buffer>;
  readonly databases: ReadonlyMap<Name, Database<unknown, Buffer>>;
}

function openHandles<Name extends string>(path: string, kinds: Readonly<Record<Name, ValueKind>>): Handles<Name> {
  const names = Object.keys(kinds) as Name[];
  const root = open<Buffer, Buffer>({
    path,
    noSubdir: false,
    maxDbs: names.length + 2,
    encoding: 'binary',
    keyEncoding: 'binary',
    overlappingSync: false,
    // One `batch` is one transaction. With event-turn batching a failed commit also rejects a promise of the library
    // that nobody can catch.
    eventTurnBatching: false,
  });
  const databases = new Map<Name, Database<unknown, Buffer>>();
  try {
    for (const name of names) {
      const encoding = kinds[name] === 'text' ? 'string' : 'binary';
      databases.set(name, root.openDB<unknown, Buffer>(name, { encoding, keyEncoding: 'binary' }));
    }
  } catch (error) {
    void root.close();
    throw error;
  }
  return { root, databases };
}

/** How much of the file LMDB has taken into use. @throws Error when the library does not tell. */
function usedBytes(root: RootDatabase<Buffer, Buffer>): number {
  const stats: unknown = root.getStats();
  if (typeof stats === 'object' && stats !== null && 'lastPageNumber' in stats && 'pageSize' in stats) {
    const { lastPageNumber, pageSize } = stats;
    if (typeof lastPageNumber === 'number' && typeof pageSize === 'number') return (lastPageNumber + 1) * pageSize;
  }
  throw new Error('the storage library does not tell its last page');
}

/** The library rejects with a general error and hands the real one out as a second promise, later. */
async function commitCause(error: unknown): Promise<string> {
  if (typeof error !== 'object' || error === null || !('commitError' in error)) return errorText(error);
  try {
    await error.commitError;
    return errorText(error);
  } catch (cause) {
    return errorText(cause);
  }
}

/** The library commits what it has of a batch when one of its writes throws: so nothing may throw in there. */
function assertWritable<Name extends string>(changes: readonly Change<Name>[]): void {
  for (const { key, value } of changes) {
    if (key.length === 0 || key.length > 1900) throw new RangeError(`a storage key has ${key.length} bytes`);
    if (value?.length === 0) throw new RangeError('a stored value has no bytes');
  }
}

const bytesOf = (array: Uint8Array): Buffer => Buffer.from(array.buffer, array.byteOffset, array.byteLength);

/**
 * Opens the environment in the folder `path`, creating it when missing.
 * @throws Error of the library when the files cannot be opened.
 */
export function openEnvironment<Name extends string>(
  path: string,
  kinds: Readonly<Record<Name, ValueKind>>,
  logger: Logger,
): Environment<Name> {
  let handles: Handles<Name> | undefined = openHandles(path, kinds);
  const reserve = createSpaceReserve(join(path, 'data.mdb'));

  const database = (name: Name): Database<unknown, Buffer> => {
    const found = handles?.databases.get(name);
    if (found === undefined) throw new Error('the store is closed');
    return found;
  };

  const options = (range: Range): { start: Buffer; end: Buffer; limit: number } & Record<string, unknown> =>
    range.reverse === true
      ? {
          start: range.to,
          end: range.from,
          limit: range.limit,
          reverse: true,
          exclusiveStart: true,
          inclusiveEnd: true,
        }
      : { start: range.from, end: range.to, limit: range.limit };

  const probe = (): void => {
    if (handles === undefined) throw new Error('the store is closed');
    handles.root.resetReadTxn();
    handles.root.doesExist(Buffer.from([1]));
  };

  /** After a failed write of the meta page LMDB refuses everything: only a fresh environment helps. */
  async function reopenIfBroken(): Promise<boolean> {
    try {
      probe();
      return false;
    } catch (error) {
      logger.error({ path, cause: errorText(error) }, 'storage environment is broken, opening it again');
    }
    try {
      const old = handles;
      handles = undefined;
      await old?.root.close();
      await reserve.close();
      handles = openHandles(path, kinds);
    } catch (error) {
      logger.error({ path, cause: errorText(error) }, 'storage environment cannot be opened again yet');
    }
    return true;
  }

  let closed = false;
  let failing = false;

  /** Said once, loudly, until a commit succeeds again: a full disk must not fill the log as well. */
  function failed(fields: object, message: string): void {
    if (failing) logger.debug({ path, ...fields }, message);
    else logger.error({ path, ...fields }, message);
    failing = true;
  }

  return {
    get: (name, key) => database(name).getBinary(key),
    entries(name, range) {
      const found: Entry[] = [];
      let bytes = 0;
      for (const { key, value } of database(name).getRange(options(range))) {
        if (!(value instanceof Uint8Array)) throw new Error(`database ${name} holds text`);
        found.push({ key: bytesOf(key), value: bytesOf(value) });
        bytes += value.byteLength;
        if (range.maxBytes !== undefined && bytes >= range.maxBytes) break;
      }
      return found;
    },
    keys(name, range) {
      const found: Buffer[] = [];
      for (const key of database(name).getKeys(options(range))) found.push(bytesOf(key));
      return found;
    },
    count: (name, range) => database(name).getKeysCount({ start: range.from, end: range.to }),
    keyAt(name, range, offset) {
      for (const key of database(name).getKeys({ ...options({ ...range, limit: 1 }), offset })) return bytesOf(key);
      return undefined;
    },
    texts(name, range) {
      const found: TextEntry[] = [];
      let characters = 0;
      for (const { key, value } of database(name).getRange(options(range))) {
        if (typeof value !== 'string') throw new Error(`database ${name} holds bytes`);
        found.push({ key, text: value });
        characters += value.length;
        if (characters >= range.maxBytes) break;
      }
      return found;
    },
    async commit(changes) {
      if (closed) return { kind: 'not_written', cause: 'the store is closed' };
      // Broken and not yet opened again: try that first, it is what recovers the store.
      if (handles === undefined) await reopenIfBroken();
      const current = handles;
      if (current === undefined) return { kind: 'not_written', cause: 'the store cannot be opened' };
      assertWritable(changes);
      try {
        await reserve.ensure(usedBytes(current.root), commitBytes(changes));
      } catch (error) {
        const cause = errorText(error);
        failed({ cause }, 'storage has no room for a commit');
        return { kind: 'not_written', cause };
      }
      const targets = changes.map((change) => database(change.database));
      try {
        await current.root.batch(() => {
          for (const [index, change] of changes.entries()) {
            const target = targets[index];
            const key = typeof change.key === 'string' ? Buffer.from(change.key, 'latin1') : change.key;
            if (change.value === undefined) void target?.remove(key);
            else void target?.put(key, change.value);
          }
        });
        if (failing) logger.info({ path }, 'storage can be written again');
        failing = false;
        return { kind: 'durable' };
      } catch (error) {
        const cause = await commitCause(error);
        const broken = await reopenIfBroken();
        failed({ cause, broken }, 'storage commit failed');
        return broken ? { kind: 'unknown', cause } : { kind: 'not_written', cause };
      }
    },
    probe,
    async close() {
      if (closed) return;
      closed = true;
      const old = handles;
      handles = undefined;
      await old?.root.close();
      await reserve.close();
    },
  };
}
