/** File-system helpers: the code of a system error, and a flushed folder, private files. */
import { chmod, open } from 'node:fs/promises';

/**
 * Makes files and folders accessible to their owner alone. One that belongs to somebody else stays as it is: whoever owns
 * it decides.
 */
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

/** Flushes a folder, so that files created or renamed in it keep their new names after a crash. */
export async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, 'r');
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}
