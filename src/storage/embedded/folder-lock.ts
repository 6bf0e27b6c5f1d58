/**
 * Allows one process per folder. On Linux the lock is an abstract unix socket named by the folder's device and inode:
 * the kernel frees it whenever the process ends, so it is never stale. Elsewhere it is a file with the owner's process
 * id and start time, which another process takes over when the owner is gone. Containers that share a volume but no
 * network namespace do not see each other's lock; there, LMDB's own lock still keeps two writers from overwriting each
 * other.
 */
import { open, readFile, rm, stat } from 'node:fs/promises';
import { createServer } from 'node:net';
import { uptime } from 'node:os';
import { join } from 'node:path';
import { systemErrorCode } from '../../kernel/files.js';

export interface FolderLock {
  release(): Promise<void>;
}

/** Takes the lock. @returns undefined when another process, or this one, already holds it */
export async function lockFolder(folder: string): Promise<FolderLock | undefined> {
  const { dev, ino } = await stat(folder, { bigint: true });
  return process.platform === 'linux'
    ? lockBySocket(`\0gateway-control-data-${dev}-${ino}`)
    : lockByFile(join(folder, 'lock.pid'));
}

function lockBySocket(path: string): Promise<FolderLock | undefined> {
  return new Promise((resolve, reject) => {
    const server = createServer((socket) => socket.destroy());
    server.once('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'EADDRINUSE') resolve(undefined);
      else reject(error);
    });
    server.listen({ path, exclusive: true }, () => {
      server.unref();
      resolve({
        release: () =>
          new Promise((done) => {
            server.close(() => done());
          }),
      });
    });
  });
}

const heldHere = new Set<string>();

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return systemErrorCode(error) === 'EPERM';
  }
}

/** Process ids are reused after a reboot: an owner that started before this boot is gone. */
const bootedAt = (): number => Date.now() - uptime() * 1000;

/** @internal exported for tests */
export async function lockByFile(path: string): Promise<FolderLock | undefined> {
  if (heldHere.has(path)) return undefined;
  for (let attempt = 0; attempt < 2; attempt += 1) {
    try {
      const file = await open(path, 'wx', 0o600);
      try {
        await file.writeFile(JSON.stringify({ pid: process.pid, since: Date.now() }));
      } finally {
        await file.close();
      }
      heldHere.add(path);
      return {
        async release() {
          heldHere.delete(path);
          await rm(path, { force: true });
        },
      };
    } catch (error) {
      if (systemErrorCode(error) !== 'EEXIST') throw error;
    }
    const owner = await readOwner(path);
    if (owner !== undefined && owner.since > bootedAt() && owner.pid !== process.pid && isAlive(owner.pid))
      return undefined;
    await rm(path, { force: true });
  }
  return undefined;
}

async function readOwner(path: string): Promise<{ pid: number; since: number } | undefined> {
  try {
    const owner: unknown = JSON.parse(await readFile(path, 'utf8'));
    if (typeof owner !== 'object' || owner === null || !('pid' in owner) || !('since' in owner)) return undefined;
    return typeof owner.pid === 'number' && typeof owner.since === 'number'
      ? { pid: owner.pid, since: owner.since }
      : undefined;
  } catch {
    return undefined;
  }
}
