/**
 * Which process may write to a data folder. Each draws an id at random when it opens the folder and stores it in both
 * environments, whose commits are conditional on it (`environment.ts`). So a process that has lost the folder to another
 * one, because the lock failed, writes nothing more and knows it. The lock (`folder-lock.ts`) keeps two processes apart in
 * the first place.
 *
 * A process also announces that it opens an environment, by an empty file beside the database, and a writer looks for such
 * files after each commit. The reason: when LMDB opens a file, it takes the number of the newest commit from what it has
 * just read, although another process may have committed since; that commit is undone. A process that finds its own
 * announcement after a commit knows that nobody had begun to open the file when the commit was made, so the commit stays.
 */
import { randomInt } from 'node:crypto';
import { closeSync, existsSync, openSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';

const sentence =
  'another process has taken over the data folder: this one writes nothing more. Only one process may use the folder';

export interface Ownership {
  /** Above 0. */
  readonly id: number;
  /** Why this process may not write any more; undefined while it may. */
  lost(): string | undefined;
  /** Another id was found in an environment. @returns the reason, as `lost` from now on */
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
