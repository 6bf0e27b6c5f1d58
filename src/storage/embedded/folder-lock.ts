/**
 * Allows one process per folder. The lock is LMDB's own: the table in the lock file of an environment lists its readers, and
 * each living reader holds a file lock (fcntl), which the kernel frees when the process ends. So the lock is never stale,
 * holds across containers that share a volume but no network or process namespace, and asks no more of the file system
 * than the stores themselves. The environment in `lock/` holds only a note of its holder. `ownership.ts` protects the
 * stores when the lock fails, as on some network file systems, or is deleted.
 */
import { stat } from 'node:fs/promises';
import { hostname } from 'node:os';
import { basename, join } from 'node:path';
import { open, type RootDatabase, type Transaction } from 'lmdb';

/** The folder of the lock in the data folder. */
export const lockFolderName = 'lock';
const noteKey = Buffer.from('holder');

export type LockOutcome =
  | { readonly kind: 'locked'; release(): Promise<void> }
  /** `by` names the process that has it, if known. */
  | { readonly kind: 'held'; readonly by: string };

/**
 * The locks that this process holds, by device and inode of the folder. LMDB's locks are per process, so they would let
 * this one in again. The transaction is referred to here because the library ends it otherwise, which frees the lock.
 */
const heldHere = new Map<string, { readonly root: RootDatabase<Buffer, Buffer>; reading?: Transaction }>();

const openTable = (path: string): RootDatabase<Buffer, Buffer> =>
  open<Buffer, Buffer>({
    path,
    noSubdir: false,
    encoding: 'binary',
    keyEncoding: 'binary',
    overlappingSync: false,
    eventTurnBatching: false,
  });

/** The living processes that read an environment. This process must not have read it. */
function readersOf(root: RootDatabase<Buffer, Buffer>): readonly string[] {
  root.readerCheck();
  const pids = [...root.readerList().matchAll(/^\s*(\d+)\s/gm)].map(([, pid = '']) => pid);
  return [...new Set(pids)];
}

const note = (): string =>
  `process ${process.pid} on ${hostname()}, ${basename(process.argv[1] ?? process.execPath)}, since ${new Date().toISOString().slice(0, 19)}Z`;

/**
 * Takes the lock of a data folder. Does not look for a process that has the stores open although the lock was deleted:
 * opening its files would harm it. That process learns from the announcement that it has lost them (`ownership.ts`).
 * @throws the library's error when the files of the lock cannot be used
 */
export async function lockFolder(folder: string): Promise<LockOutcome> {
  const { dev, ino } = await stat(folder, { bigint: true });
  const id = `${dev}:${ino}`;
  if (heldHere.has(id)) return { kind: 'held', by: note() };
  const root = openTable(join(folder, lockFolderName));
  const held: { readonly root: typeof root; reading?: Transaction } = { root };
  heldHere.set(id, held);
  const release = async (): Promise<void> => {
    await root.close();
    heldHere.delete(id);
  };
  try {
    // In a write transaction, so that the later of two simultaneous processes finds the other.
    const holder = root.transactionSync(() => {
      const [pid] = readersOf(root);
      if (pid !== undefined) return root.getBinary(noteKey)?.toString('utf8') ?? `process ${pid}`;
      // Never ended: it stands in the table until the environment is closed.
      held.reading = root.useReadTransaction();
      root.putSync(noteKey, Buffer.from(note()));
      return undefined;
    });
    if (holder === undefined) return { kind: 'locked', release };
    await release();
    return { kind: 'held', by: holder };
  } catch (error) {
    await release();
    throw error;
  }
}
