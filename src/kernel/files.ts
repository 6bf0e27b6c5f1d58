/** File-system helpers: codes of system errors, folder flushes, private files, secrets in files. */
import { readFileSync } from 'node:fs';
import { chmod, open } from 'node:fs/promises';

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
