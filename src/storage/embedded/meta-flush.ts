/**
 * Flushes what LMDB has written to its data file and left to the next commit: the meta page of an environment that is opened
 * with `noMetaSync` (`environment.ts`). Not with the library's own `sync`, which does not tell that a flush has failed.
 */
import { open, type FileHandle } from 'node:fs/promises';

export interface MetaFlush {
  /** Returns when the data file is on the disk. @throws the file system's error */
  flush(): Promise<void>;
  close(): Promise<void>;
}

/** @param path of the data file, which is opened at the first flush */
export function createMetaFlush(path: string): MetaFlush {
  let file: FileHandle | undefined;
  return {
    async flush() {
      file ??= await open(path, 'r+');
      await file.datasync();
    },
    async close() {
      const opened = file;
      file = undefined;
      await opened?.close();
    },
  };
}
