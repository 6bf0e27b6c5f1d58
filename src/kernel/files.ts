/** File-system helpers: codes of system errors, folder flushes, private files, secrets in files, open descriptors, built files. */
import { randomBytes } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { chmod, link, open, readdir, readFile, rename, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** Makes files and folders accessible to their owner alone. Those of another owner are left alone. */
export async function makePrivate(mode: 0o600 | 0o700, paths: readonly string[]): Promise<void> {
  for (const path of paths) {
    try {
      await chmod(path, mode);
    } catch (error) {
      if (systemErrorCode(error) !== 'EPERM') throw error;
    }
  }
}

/** The code of a system error, such as ENOENT; undefined for any other error. */
export function systemErrorCode(error: unknown): string | undefined {
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  return typeof code === 'string' ? code : undefined;
}

/** How many descriptors this process has open, and may have; undefined where the system does not say. */
export async function openDescriptors(): Promise<{ readonly open: number; readonly limit: number } | undefined> {
  try {
    const [open, limits] = await Promise.all([readdir('/proc/self/fd'), readFile('/proc/self/limits', 'utf8')]);
    const limit = /^Max open files +(\d+)/m.exec(limits)?.[1];
    return { open: open.length, limit: limit === undefined ? Number.POSITIVE_INFINITY : Number(limit) };
  } catch {
    return undefined;
  }
}

/** Reads a secret from a file, without a trailing line break. @throws a system error */
export function readSecretFile(path: string): string {
  return readFileSync(path, 'utf8').replace(/\r?\n$/, '');
}

/** Flushes a folder, so that files created or renamed in it keep their new names after a crash. */
export async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, 'r');
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}

/**
 * Creates a file for its owner alone, completely or not at all, even if the machine crashes half way. If another process
 * has created it meanwhile, that file stays.
 * @throws a system error
 */
export async function createPrivateFile(path: string, text: string): Promise<void> {
  const draft = `${path}.${randomBytes(6).toString('hex')}`;
  try {
    const file = await open(draft, 'wx', 0o600);
    try {
      await file.writeFile(text);
      await file.sync();
    } finally {
      await file.close();
    }
    await link(draft, path).catch(async (error: unknown) => {
      // Some file systems have no hard links. There, the lock of the data folder keeps other processes away.
      if (systemErrorCode(error) !== 'EEXIST') await rename(draft, path);
    });
    await syncFolder(dirname(path));
  } finally {
    await rm(draft, { force: true });
  }
}

/**
 * The nearest `dist/<path>` above a module, which runs from `src/`, `dist/src/`, a package or the build of the tests.
 * @param url of the module
 */
export function findBuilt(path: string, url: string): string | undefined {
  for (let from = dirname(fileURLToPath(url)); from !== dirname(from); from = dirname(from)) {
    const file = join(from, 'dist', path);
    if (existsSync(file)) return file;
  }
  return undefined;
}

/**
 * Reads a built file when it is first asked for, and keeps it, so that an instance serves one build.
 * @param find returns its path; undefined if it was not built @returns a function that gives it; rejects with the error
 *   of `read`, and the next call tries again
 */
export function readOnce<T>(
  find: () => string | undefined,
  read: (path: string) => Promise<T>,
): () => Promise<T | undefined> {
  let reading: Promise<T> | undefined;
  return async () => {
    if (reading === undefined) {
      const path = find();
      if (path === undefined) return undefined;
      reading = read(path);
      reading.catch(() => (reading = undefined));
    }
    return reading;
  };
}
