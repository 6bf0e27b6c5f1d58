/**
 * Which process may write to a data folder. Each process draws a random id when it opens the folder and stores it in
 * both environments, whose commits are conditional on it (`environment.ts`). So a process that lost the folder to
 * another one, because the lock failed, writes nothing more and knows why. The lock (`folder-lock.ts`) is what normally
 * keeps two processes apart.
 *
 * Before a process opens an environment, it announces that with an empty file beside the database, and a writer looks
 * for such files after each commit. The reason: when LMDB opens a file, it takes the number of the newest commit from
 * what it has just read, although another process may have committed since; that commit is then undone. A process that
 * still finds its own announcement after a commit knows that nobody had started to open the file before, so the commit
 * is safe.
 */
import { randomInt } from 'node:crypto';
import { closeSync, existsSync, openSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';

const sentence =
  'another process has taken over the data folder: this one writes nothing more. Only one process may use the folder';

export interface Ownership {
  /** Greater than 0. */
  readonly id: number;
  /** Why this process may no longer write; undefined while it may. */
  lost(): string | undefined;
  /** A foreign id was found in an environment. @returns the reason, which `lost` returns from now on */
  lose(): string;
}

/** @param onLost called once, with the reason */
export function createOwnership(onLost: (reason: string) => void = () => undefined): Ownership {
  let lost: string | undefined;
  return {
    id: randomInt(1, 2 ** 47),
    lost: () => lost,
    lose() {
      if (lost === undefined) {
        lost = sentence;
        onLost(sentence);
      }
      return lost;
    },
  };
}

const prefix = 'opened-by-';

export interface Announcement {
  /** False when another process has announced itself since. @throws the file system's error */
  stands(): boolean;
}

const announced = (path: string): readonly string[] => readdirSync(path).filter((name) => name.startsWith(prefix));

/**
 * True when a process has, or once had, the environment in the folder `path` open.
 * @internal exported for tests
 */
export const wasAnnounced = (path: string): boolean => announced(path).length > 0;

/**
 * Announces that this process opens the environment in the folder `path`, which exists. If two do so at once, both
 * announcements may be invalid.
 * @param id of this process's ownership
 * @throws the file system's error; never because the disk is full, as the file is empty
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
      // Somebody removed it by hand: another process would have left its own.
      create();
      return true;
    },
  };
}
