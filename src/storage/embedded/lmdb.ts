/**
 * How this adapter uses the LMDB library: it opens the files and databases of an environment, and reads them. Reads are
 * short and synchronous, in the library's read transaction of the current turn of the event loop. `environment.ts`
 * writes, and says why these options were chosen.
 */
import { open, type Database, type RootDatabase } from 'lmdb';

/** Bytes, or the same bytes as latin-1 text, which is cheaper to create, hold and compare. */
export type Key = Buffer | string;

/** The kind of a database's values: scans return `text` (UTF-8) as strings without copying the bytes. */
export type ValueKind = 'bytes' | 'text';

export interface Handles<Name extends string> {
  readonly root: RootDatabase<Buffer, Buffer>;
  readonly databases: Map<Name, Database<unknown, Key>>;
  /** A single entry, whose version is the id of the process that may write. */
  readonly owner: Database<unknown, Buffer>;
}

export const ownerKey = Buffer.from('owner');

/** For the library, whose types omit it. Writes strings directly: a buffer for each would cost more than its write. */
const keyEncoder = {
  writeKey(key: Key, target: Buffer, start: number): number {
    if (typeof key === 'string') return start + target.write(key, start, 'latin1');
    target.set(key, start);
    return start + key.length;
  },
  readKey: (source: Uint8Array, start: number, end: number): Uint8Array =>
    Uint8Array.prototype.slice.call(source, start, end),
};

function openDatabase(root: RootDatabase<Buffer, Buffer>, name: string, kind: ValueKind): Database<unknown, Key> {
  const options = { encoding: kind === 'text' ? 'string' : 'binary', keyEncoder } as const;
  return root.openDB<unknown, Key>(name, options);
}

/** Opens or creates the databases in one transaction, because each transaction costs a flush. */
function openDatabases<Name extends string>(handles: Handles<Name>, kinds: ReadonlyMap<Name, ValueKind>): void {
  const { root, databases } = handles;
  root.transactionSync(() => {
    for (const [name, kind] of kinds) databases.set(name, openDatabase(root, name, kind));
  });
}

export function openHandles<Name extends string>(
  path: string,
  kinds: ReadonlyMap<Name, ValueKind>,
  mixed: boolean,
): Handles<Name> {
  const root = open<Buffer, Buffer>({
    path,
    noSubdir: false,
    maxDbs: kinds.size + 1,
    encoding: 'binary',
    keyEncoding: 'binary',
    overlappingSync: false,
    noMetaSync: mixed,
    // One `batch` is one transaction. With event-turn batching, a failed commit also rejects a promise inside the
    // library that no caller can catch.
    eventTurnBatching: false,
  });
  try {
    const owner = root.openDB<unknown, Buffer>('owner', {
      encoding: 'binary',
      keyEncoding: 'binary',
      useVersions: true,
    });
    const handles: Handles<Name> = { root, databases: new Map(), owner };
    openDatabases(handles, kinds);
    return handles;
  } catch (error) {
    void root.close();
    throw error;
  }
}

/**
 * Opens the files read-only, beside the process that writes them: LMDB keeps the pages that a reader is reading, and a
 * reader changes nothing but its row in the table of readers.
 * @throws the library's error when there are none
 */
export function openForReading<Name extends string>(
  path: string,
  kinds: ReadonlyMap<Name, ValueKind>,
): Pick<Handles<Name>, 'root' | 'databases'> {
  const options = { encoding: 'binary', keyEncoding: 'binary' } as const;
  const root = open<Buffer, Buffer>({ path, noSubdir: false, readOnly: true, maxDbs: kinds.size + 1, ...options });
  const databases = new Map<Name, Database<unknown, Key>>();
  for (const [name, kind] of kinds) databases.set(name, openDatabase(root, name, kind));
  return { root, databases };
}

/** The bytes of the file that LMDB uses. @throws Error when the library does not report them */
export function usedBytes(root: RootDatabase<Buffer, Buffer>): number {
  const stats: unknown = root.getStats();
  if (typeof stats === 'object' && stats !== null && 'lastPageNumber' in stats && 'pageSize' in stats) {
    const { lastPageNumber, pageSize } = stats;
    if (typeof lastPageNumber === 'number' && typeof pageSize === 'number') return (lastPageNumber + 1) * pageSize;
  }
  throw new Error('the storage library does not report its last page');
}

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

export interface Reads<Name extends string> {
  get(database: Name, key: Key): Buffer | undefined;
  /** Stops once `maxBytes` of values have been read, but not before the first entry. */
  entries(database: Name, range: Range & { readonly maxBytes?: number }): Entry[];
  keys(database: Name, range: Range): Buffer[];
  /** The number of keys in a range. The library counts a million keys in tens of milliseconds. */
  count(database: Name, range: { readonly from: Buffer; readonly to: Buffer }): number;
  /** The key at `offset` in the range; undefined past its end. Much cheaper than reading the keys before it. */
  keyAt(database: Name, range: Omit<Range, 'limit'>, offset: number): Buffer | undefined;
  /** Values of a text database. Stops once about `maxBytes` have been read, but not before the first entry. */
  texts(database: Name, range: Range & { readonly maxBytes: number }): TextEntry[];
}

const bytesOf = (key: Key | Uint8Array): Buffer =>
  typeof key === 'string' ? Buffer.from(key, 'latin1') : Buffer.from(key.buffer, key.byteOffset, key.byteLength);

const bounded = (range: Range): { start: Buffer; end: Buffer; limit: number } & Record<string, unknown> =>
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

/** @param database finds an open database @returns reads that throw what `database` and the library throw */
export function createReads<Name extends string>(database: (name: Name) => Database<unknown, Key>): Reads<Name> {
  return {
    get: (name, key) => database(name).getBinary(key),
    entries(name, range) {
      const entries: Entry[] = [];
      let bytes = 0;
      for (const { key, value } of database(name).getRange(bounded(range))) {
        if (!(value instanceof Uint8Array)) throw new Error(`database ${name} holds text`);
        entries.push({ key: bytesOf(key), value: bytesOf(value) });
        bytes += value.byteLength;
        if (range.maxBytes !== undefined && bytes >= range.maxBytes) break;
      }
      return entries;
    },
    keys(name, range) {
      const keys: Buffer[] = [];
      for (const key of database(name).getKeys(bounded(range))) keys.push(bytesOf(key));
      return keys;
    },
    count: (name, range) => database(name).getKeysCount({ start: range.from, end: range.to }),
    keyAt(name, range, offset) {
      for (const key of database(name).getKeys({ ...bounded({ ...range, limit: 1 }), offset })) return bytesOf(key);
      return undefined;
    },
    texts(name, range) {
      const entries: TextEntry[] = [];
      let characters = 0;
      for (const { key, value } of database(name).getRange(bounded(range))) {
        if (typeof value !== 'string') throw new Error(`database ${name} holds bytes`);
        entries.push({ key: typeof key === 'string' ? bytesOf(key) : key, text: value });
        characters += value.length;
        if (characters >= range.maxBytes) break;
      }
      return entries;
    },
  };
}
