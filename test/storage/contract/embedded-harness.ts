/** Opens the embedded stores for the contract suites, bare or inside the hostile wrappers. */
import { systemClock } from '../../../src/kernel/clock.js';
import { silentLogger } from '../../../src/kernel/logger.js';
import { openEmbedded, type EmbeddedStores } from '../../../src/storage/embedded/open-embedded.js';
import type { EventStore } from '../../../src/storage/event-store.js';
import type { ReadStore } from '../../../src/storage/read-store.js';
import { temporaryFolder } from './temporary-folder.js';

export interface EmbeddedHarness<T> {
  store(): T;
  reopen(): Promise<void>;
  close(): Promise<void>;
}

/** `pick` may wrap the store that it takes; the wrapper must close what it wraps. */
export async function embeddedHarness<T extends EventStore | ReadStore>(
  pick: (stores: EmbeddedStores) => T,
): Promise<EmbeddedHarness<T>> {
  const folder = await temporaryFolder();
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
    async close() {
      await closeAll();
      await folder.remove();
    },
  };
}
