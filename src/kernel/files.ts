/** File-system helpers: the code of a system error, and a flushed folder. */
import { open } from 'node:fs/promises';

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
