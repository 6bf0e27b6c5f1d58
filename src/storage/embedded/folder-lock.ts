/**
 * Allows one process per folder. The lock is LMDB's own: each living reader of an environment holds a file lock (fcntl),
 * which the kernel frees when the process ends. So it is never stale, and works across containers that share a volume.
 * `lock/` stores only a note about its holder. `ownership.ts` protects the stores when the lock fails or is deleted.
 */
import { stat } from 'node:fs/promises';
import { hostname } from 'node:os';
import { basename, join } from 'node:path';
import { open, type RootDatabase, type Transaction } from 'lmdb';

/** The folder of the lock inside the data folder. */
export const lockFolderName = 'lock';
const noteKey = Buffer.from('holder');

export type LockOutcome =
  | { readonly kind: 'locked'; release(): Promise<void> }
  /** `by` names the process that holds it, if known. */
  | { readonly kind: 'held'; readonly by: string };

/**
 * The locks that this process holds, by device and inode of the folder. LMDB's locks are per process and would let this
 * process in again. The transaction is kept here because the library would otherwise end it, which frees the lock.
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
 * Takes the lock of a data folder. If the lock file was deleted, another process may still have the stores open. This
 * is not checked, because opening its files would harm it; that process learns of its loss from the announcement
 * (`ownership.ts`).
 * @throws the library's error when the lock files cannot be used
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
    // In a write transaction, so that the later of two concurrent processes sees the other.
    const holder = root.transactionSync(() => {
      const [pid] = readersOf(root);
      if (pid !== undefined) return root.getBinary(noteKey)?.toString('utf8') ?? `process ${pid}`;
      // Never ended: its entry stays in the table until the environment is closed.
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
