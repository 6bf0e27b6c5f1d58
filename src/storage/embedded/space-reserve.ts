/**
 * Keeps room behind LMDB's last page, so that a full disk is met here, before a commit begins, and not inside it.
 *
 * Why: the library's own handling of a failed page write overruns a buffer (lmdb 3.5, `mdb_page_flush`), which ends the
 * process sooner or later. The room is written as zeros, not left as a hole, so the file system has given its blocks;
 * LMDB takes its pages from there because it goes by its own page count, not by the size of the file. On file systems
 * that never overwrite in place (btrfs, zfs) the room is only a good guess.
 */
import { open, type FileHandle } from 'node:fs/promises';

const pageBytes = 4096;
const zeros = Buffer.alloc(1024 * 1024);
/** Written at once beyond what is needed, so that most commits find room. */
const extraBytes = { min: 1024 * 1024, max: 16 * 1024 * 1024 };

export interface SpaceReserve {
  /**
   * Makes sure that `need` bytes can be written behind the first `used` bytes of the file.
   * @throws Error of the file system, such as ENOSPC; nothing that is in use was touched.
   */
  ensure(used: number, need: number): Promise<void>;
  close(): Promise<void>;
}

/**
 * An upper bound, by a good margin, of what a commit writes: per change the leaf it goes to and a split of it, for its
 * value its own pages, and the branches above and the free list once.
 */
export function commitBytes(changes: readonly { readonly value: Buffer | undefined }[]): number {
  let pages = 64;
  for (const { value } of changes) pages += 2 + Math.ceil((value?.length ?? 0) / pageBytes);
  return Math.ceil(pages * 1.1) * pageBytes;
}

export function createSpaceReserve(path: string): SpaceReserve {
  let file: FileHandle | undefined;
  let size = 0;
  /** What could not be had last time: until then the disk is full for smaller commits too, so that it does not flap. */
  let refused = 0;
  return {
    async ensure(used, wanted) {
      const need = Math.max(wanted, refused);
      if (used + need <= size) {
        refused = 0;
        return;
      }
      file ??= await open(path, 'r+');
      size = (await file.stat()).size;
      // Zeros only ever go behind the end of the file, whatever `used` says.
      const extra = Math.min(extraBytes.max, Math.max(extraBytes.min, used / 8));
      const target = used + need + Math.ceil(extra / pageBytes) * pageBytes;
      while (size < target) {
        const length = Math.min(zeros.length, target - size);
        try {
          const { bytesWritten } = await file.write(zeros, 0, length, size);
          size += bytesWritten;
        } catch (error) {
          // The extra is only for comfort.
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
