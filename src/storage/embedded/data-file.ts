/**
 * Manages LMDB's data file from outside the library. Reserves space behind LMDB's last page, so that a full disk fails
 * here, before a commit begins: when a page write fails, the library overruns a buffer (lmdb 3.5, `mdb_page_flush`),
 * which sooner or later crashes the process.
 *
 * The space is written as zeros, so that the file system allocates its blocks. LMDB uses it, because it goes by its own
 * page count. On file systems that never overwrite in place (btrfs, zfs) the reserve is only an estimate.
 */
import { open, type FileHandle } from 'node:fs/promises';

const pageBytes = 4096;
/** The maximum that LMDB adds to an entry in its leaf, in bytes. */
const entryBytes = 32;
/** A smaller value is always in its leaf, whatever its key: LMDB puts at least two entries into a leaf. */
const leafValueBytes = 1024;
const zeros = Buffer.alloc(1024 * 1024);
/** Written on top of what is needed, so that most commits need not extend the file. */
const extraBytes = { min: 1024 * 1024, max: 16 * 1024 * 1024 };

export interface SpaceReserve {
  /**
   * Makes sure that `need` bytes can be written after the first `used` bytes of the file.
   * @param mayShrink whether this process still owns the file: if it does, a reservation that turns out too small is
   *   given back
   * @throws the file system's error, such as ENOSPC; no used byte was touched
   */
  ensure(used: number, need: number, mayShrink: () => boolean): Promise<void>;
  close(): Promise<void>;
}

/**
 * A generous upper bound of what a commit writes: for each change, its leaf page, a split of it and the pages of its
 * value; once, the branch pages and the free list. Many small changes share leaves: together they cannot touch more
 * pages than exist, plus the new ones they need.
 * @param changes the changes, per database
 * @param used bytes of the file before the commit
 */
export function commitBytes(changes: readonly Iterable<readonly [string, Buffer | undefined]>[], used: number): number {
  let [leaves, values, bytes] = [0, 0, 0];
  for (const entries of changes) {
    for (const [key, value] of entries) {
      leaves += 2;
      bytes += key.length + (value?.length ?? 0) + entryBytes;
      // A larger value has pages of its own, beside its leaf.
      if (value !== undefined && value.length > leafValueBytes) values += 1 + Math.ceil(value.length / pageBytes);
    }
  }
  const shared = Math.ceil((used + 2 * bytes) / pageBytes);
  return Math.ceil((64 + values + Math.min(leaves, shared)) * 1.1) * pageBytes;
}

export function createSpaceReserve(path: string): SpaceReserve {
  let file: FileHandle | undefined;
  let size = 0;
  /**
   * The last size that was refused. Until it fits, smaller commits are refused too, so that the store does not flap.
   */
  let refused = 0;
  return {
    async ensure(used, wanted, mayShrink) {
      const need = Math.max(wanted, refused);
      if (used + need <= size) {
        refused = 0;
        return;
      }
      // Only ever appends zeros to the file, whatever `used` says and whoever else writes to it.
      file ??= await open(path, 'a');
      size = (await file.stat()).size;
      const before = size;
      const extra = Math.min(extraBytes.max, Math.max(extraBytes.min, used / 8));
      const target = used + need + Math.ceil(extra / pageBytes) * pageBytes;
      while (size < target) {
        const length = Math.min(zeros.length, target - size);
        try {
          const { bytesWritten } = await file.write(zeros, 0, length);
          size += bytesWritten;
        } catch (error) {
          // The extra space is optional.
          if (used + need <= size) break;
          refused = need;
          // A disk filled to the last byte would break everything else on it, too.
          if (size > before && (await file.stat()).size === size && mayShrink()) {
            await file.truncate(before);
            size = before;
          }
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
 * Flushes what LMDB has written to its data file and left for the next commit to flush: the meta page of an environment
 * opened with `noMetaSync` (`environment.ts`). The library's own `sync` does not report a failed flush.
 */
export interface MetaFlush {
  /** Returns when the data file is on disk. @throws the file system's error */
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
