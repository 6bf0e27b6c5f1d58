/**
 * Treats LMDB's data file beside the library. Reserves space behind LMDB's last page, so that a full disk fails here,
 * before a commit begins, and not inside it.
 *
 * Why: when a page write fails, the library overruns a buffer (lmdb 3.5, `mdb_page_flush`), which sooner or later
 * crashes the process. The space is written as zeros rather than left as a hole, so that the file system allocates its
 * blocks. LMDB uses it because it goes by its own page count, not by the size of the file. On file systems that never
 * overwrite in place (btrfs, zfs) the reserve is only an estimate.
 */
import { open, type FileHandle } from 'node:fs/promises';

const pageBytes = 4096;
const zeros = Buffer.alloc(1024 * 1024);
/** Written in addition to what is needed, so that most commits need not extend the file. */
const extraBytes = { min: 1024 * 1024, max: 16 * 1024 * 1024 };

export interface SpaceReserve {
  /**
   * Makes sure that `need` bytes can be written after the first `used` bytes of the file.
   * @throws the file system's error, such as ENOSPC; no used byte was touched
   */
  ensure(used: number, need: number): Promise<void>;
  close(): Promise<void>;
}

/**
 * A generous upper bound of what a commit writes: per change, its leaf page, a split of it and the pages of its value;
 * once, the branch pages and the free list.
 * @param changes of each database
 */
export function commitBytes(changes: readonly Iterable<readonly [string, Buffer | undefined]>[]): number {
  let pages = 64;
  for (const entries of changes) {
    for (const [, value] of entries) pages += 2 + (value === undefined ? 0 : Math.ceil(value.length / pageBytes));
  }
  return Math.ceil(pages * 1.1) * pageBytes;
}

export function createSpaceReserve(path: string): SpaceReserve {
  let file: FileHandle | undefined;
  let size = 0;
  /**
   * The size that was refused last. Until it fits, smaller commits are refused too, so that the store does not flap.
   */
  let refused = 0;
  return {
    async ensure(used, wanted) {
      const need = Math.max(wanted, refused);
      if (used + need <= size) {
        refused = 0;
        return;
      }
      // Zeros are only ever appended to the file, whatever `used` says and whoever else writes to it.
      file ??= await open(path, 'a');
      size = (await file.stat()).size;
      const extra = Math.min(extraBytes.max, Math.max(extraBytes.min, used / 8));
      const target = used + need + Math.ceil(extra / pageBytes) * pageBytes;
      while (size < target) {
        const length = Math.min(zeros.length, target - size);
        try {
          const { bytesWritten } = await file.write(zeros, 0, length);
          size += bytesWritten;
        } catch (error) {
          // The extra is optional.
          if (used + need <= size) break;
          refused = need;
          throw error;
        }
      }
      refused = 0;
    },
    async close() {
      const open = file;
      file = undefined;
      size = 0;
      await open?.close();
    },
  };
}

/**
 * Flushes what LMDB has written to its data file and left to the next commit: the meta page of an environment that is
 * opened with `noMetaSync` (`environment.ts`). The library's own `sync` does not tell that a flush has failed.
 */
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
