/**
 * Which process may write to a data folder: each draws an id at random when it opens the folder and stores it in both
 * environments, whose commits are conditional on it (`environment.ts`). So a process that another one has taken the
 * folder from, because the lock failed, writes nothing more and knows it. Not the lock (`folder-lock.ts`), which keeps
 * two processes apart in the first place.
 */
import { randomInt } from 'node:crypto';

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
