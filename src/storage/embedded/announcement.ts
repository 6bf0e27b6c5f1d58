/**
 * Who opens an environment announces it first, by an empty file beside the database, and whoever writes looks there after
 * each commit. For LMDB, when it opens a file, takes the number of the newest commit from what it has just read, although
 * another process may have committed since: that commit is undone. A process that finds its own announcement after a
 * commit knows that nobody had begun to open the file when the commit was made, so the commit stays.
 *
 * Not the lock (`folder-lock.ts`), which keeps the second process out in the first place, and not what makes commits
 * conditional (`ownership.ts`).
 */
import { closeSync, existsSync, openSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';

const prefix = 'opened-by-';

export interface Announcement {
  /** False when another process has announced itself since. @throws the error of the file system */
  stands(): boolean;
}

const announced = (path: string): readonly string[] => readdirSync(path).filter((name) => name.startsWith(prefix));

/**
 * True when a process has had the environment in the folder `path` open, now or earlier.
 * @internal exported for tests
 */
export const wasAnnounced = (path: string): boolean => announced(path).length > 0;

/**
 * Announces that this process opens the environment in the folder `path`, which exists. When two do so at once, both may
 * find that theirs does not stand.
 * @param id of this process's ownership
 * @throws the error of the file system; a full disk is none, because the file is empty
 */
export function announce(path: string, id: number): Announcement {
  const own = `${prefix}${id}`;
  const create = (): void => closeSync(openSync(join(path, own), 'a', 0o600));
  create();
  for (const name of announced(path)) if (name !== own) rmSync(join(path, name), { force: true });
  return {
    stands() {
      if (existsSync(join(path, own))) return true;
      if (wasAnnounced(path)) return false;
      // Removed by hand: another process would have left its own.
      create();
      return true;
    },
  };
}
