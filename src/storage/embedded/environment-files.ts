/**
 * The files of an LMDB environment as the library opens them, with their databases. Why with these options, and what is done
 * with them, is in `environment.ts`.
 */
import { open, type Database, type RootDatabase } from 'lmdb';

/** Bytes, or the same bytes as latin-1 text, which is cheaper to make, to hold and to compare. */
export type Key = Buffer | string;

/** Kind of a database's values: `text` is UTF-8 that scans return as strings without copying the bytes. */
export type ValueKind = 'bytes' | 'text';

export interface Handles<Name extends string> {
  readonly root: RootDatabase<Buffer, Buffer>;
  readonly databases: Map<Name, Database<unknown, Key>>;
  /** One entry, whose version is the id of the process that may write. */
  readonly owner: Database<unknown, Buffer>;
}

export const ownerKey = Buffer.from('owner');

/** For the library, whose types leave it out. Writes texts as they are: a buffer of each would cost more than its write. */
const keyEncoder = {
  writeKey(key: Key, target: Buffer, start: number): number {
    if (typeof key === 'string') return start + target.write(key, start, 'latin1');
    target.set(key, start);
    return start + key.length;
  },
  readKey: (source: Uint8Array, start: number, end: number): Uint8Array =>
    Uint8Array.prototype.slice.call(source, start, end),
};

/** How many databases may be added later (`add`). A database that is not opened costs nothing. */
const addedDatabases = 200;

/** Opens and creates them in one transaction, because each has its flush. */
export function openDatabases<Name extends string>(handles: Handles<Name>, kinds: ReadonlyMap<Name, ValueKind>): void {
  const { root, databases } = handles;
  root.transactionSync(() => {
    for (const [name, kind] of kinds) {
      const options = { encoding: kind === 'text' ? 'string' : 'binary', keyEncoder } as const;
      databases.set(name, root.openDB<unknown, Key>(name, options));
    }
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
    maxDbs: kinds.size + addedDatabases,
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

/** How much of the file LMDB uses. @throws Error when the library does not report it */
export function usedBytes(root: RootDatabase<Buffer, Buffer>): number {
  const stats: unknown = root.getStats();
  if (typeof stats === 'object' && stats !== null && 'lastPageNumber' in stats && 'pageSize' in stats) {
    const { lastPageNumber, pageSize } = stats;
    if (typeof lastPageNumber === 'number' && typeof pageSize === 'number') return (lastPageNumber + 1) * pageSize;
  }
  throw new Error('the storage library does not report its last page');
}
