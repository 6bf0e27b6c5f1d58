/** Opens the embedded stores for the contract suites, bare or inside the hostile wrappers. */
import { cp, readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { systemClock } from '../../../src/kernel/clock.js';
import { silentLogger } from '../../../src/kernel/logger.js';
import { openEmbedded, type EmbeddedStores } from '../../../src/storage/embedded/open-embedded.js';
import type { EventStore } from '../../../src/storage/event-store.js';
import type { ReadStore } from '../../../src/storage/read-store.js';
import { temporaryFolder } from './temporary-folder.js';

export interface EmbeddedHarness<T> {
  store(): T;
  reopen(): Promise<void>;
  kill(): Promise<void>;
  close(): Promise<void>;
}

/** Names, lengths and times of all files. */
async function stateOf(folder: string): Promise<string> {
  const names = (await readdir(folder, { recursive: true })).toSorted();
  const stats = await Promise.all(names.map((name) => stat(join(folder, name), { bigint: true })));
  return names.map((name, at) => `${name} ${stats[at]?.size} ${stats[at]?.mtimeNs}`).join('\n');
}

/** Copies the files as a kill would leave them now; copies again when one was written meanwhile. */
async function copyAsKilled(from: string, to: string): Promise<void> {
  for (let attempt = 0; attempt < 100; attempt += 1) {
    const before = await stateOf(from);
    await cp(from, to, { recursive: true, force: true });
    if ((await stateOf(from)) === before) return;
  }
  throw new Error(`${from} was written all the time`);
}

/** `pick` may return a wrapper, which must close the store that it wraps. */
export async function embeddedHarness<T extends EventStore | ReadStore>(
  pick: (stores: EmbeddedStores) => T,
): Promise<EmbeddedHarness<T>> {
  let folder = await temporaryFolder();
  const openStores = (): Promise<EmbeddedStores> =>
    openEmbedded({ dataDir: folder.path, clock: systemClock, logger: silentLogger });
  let stores = await openStores();
  let store = pick(stores);
  const closeAll = async (): Promise<void> => {
    await store.close();
    await stores.close();
  };
  return {
    store: () => store,
    async reopen() {
      await closeAll();
      stores = await openStores();
      store = pick(stores);
    },
    async kill() {
      const left = await temporaryFolder();
      await copyAsKilled(folder.path, left.path);
      // Closed only now, so that the copy has nothing that closing writes.
      await closeAll();
      await folder.remove();
      folder = left;
      stores = await openStores();
      store = pick(stores);
    },
    async close() {
      await closeAll();
      await folder.remove();
    },
  };
}
