/** Embedded stores in a temporary folder of their own. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Clock } from '../../src/kernel/clock.js';
import { silentLogger, type Logger } from '../../src/kernel/logger.js';
import { openEmbedded, type EmbeddedStores } from '../../src/storage/embedded/open-embedded.js';

export interface TemporaryStores extends EmbeddedStores {
  readonly folder: string;
  /** Closes the stores and opens the same folder again. */
  reopened(): Promise<TemporaryStores>;
  /** Closes the stores and deletes the folder. */
  close(): Promise<void>;
}

export async function openTemporaryStores(
  clock: Clock,
  logger: Logger = silentLogger,
  folder = mkdtempSync(join(tmpdir(), 'stores-')),
): Promise<TemporaryStores> {
  const stores = await openEmbedded({ dataDir: folder, clock, logger });
  return {
    ...stores,
    folder,
    async reopened() {
      await stores.close();
      return openTemporaryStores(clock, logger, folder);
    },
    async close() {
      await stores.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
