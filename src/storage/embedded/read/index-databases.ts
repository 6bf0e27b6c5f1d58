/**
 * Which database holds the index entries of which collection. Each has one of its own, because LMDB empties a database in
 * one step, however many keys it has, and a rebuild drops all the collections that it replaces. A database that is free is
 * used again. Part of `collections.ts`.
 */
import type { IndexDatabase, ReadEnvironment } from './layout.js';

export interface IndexDatabases {
  /** The number of the database of a collection, the same for the same `owner`; `sharedDatabase` when none is free. */
  take(owner: string): number;
  /** Another owner holds it from now on. */
  pass(from: string, to: string): void;
  /** The database may be given to others. Call it when it is empty. */
  free(owner: string): void;
}

/** How many are created together, as each creation is a flush that holds up the event loop. */
const createdAtOnce = 32;

/** More collections than this share one: versions that are never dropped must not fill the library's table. */
const mostDatabases = 128;

/** The one that is shared. It is never emptied at once. */
export const sharedDatabase = 0;

export const indexDatabase = (number: number): IndexDatabase => `indexes.${number}`;

/**
 * Opens all that are in use, and some more.
 * @param owners the numbers in use, by owner
 */
export function openIndexDatabases(environment: ReadEnvironment, owners: ReadonlyMap<string, number>): IndexDatabases {
  const used = new Map(owners);
  let opened = 0;

  function openUpTo(number: number): void {
    while (opened < number) {
      const names = Array.from({ length: createdAtOnce }, (_, index) => indexDatabase(opened + index + 1));
      environment.add(names, 'bytes');
      opened += createdAtOnce;
    }
  }

  environment.add([indexDatabase(sharedDatabase)], 'bytes');
  openUpTo(Math.max(1, ...used.values()));
  return {
    take(owner) {
      const present = used.get(owner);
      if (present !== undefined) return present;
      const taken = new Set(used.values());
      let number = 1;
      while (taken.has(number)) number += 1;
      if (number > mostDatabases) return sharedDatabase;
      openUpTo(number);
      used.set(owner, number);
      return number;
    },
    pass(from, to) {
      const number = used.get(from);
      if (number === undefined) return;
      used.delete(from);
      used.set(to, number);
    },
    free: (owner) => void used.delete(owner),
  };
}
