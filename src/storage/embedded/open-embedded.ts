/**
 * Opens the embedded stores of one data folder. Code outside this folder imports only this file.
 * Implements `docs/architecture.md#storage`.
 */
import { join } from 'node:path';
import type { Clock } from '../../kernel/clock.js';
import { errorText } from '../../kernel/errors.js';
import { makePrivate } from '../../kernel/files.js';
import type { Logger } from '../../kernel/logger.js';
import type { ReadStore } from '../read-store.js';
import { DataFolderError, openDataFolder } from './data-folder.js';
import { openEventStore, type EmbeddedEventStore } from './log/event-store.js';
import { openReadStore } from './read/read-store.js';

export { DataFolderError } from './data-folder.js';

export interface EmbeddedOptions {
  readonly dataDir: string;
  readonly clock: Clock;
  readonly logger: Logger;
}

export interface EmbeddedStores {
  readonly eventStore: EmbeddedEventStore;
  readonly readStore: ReadStore;
  /** Writes what is queued, closes both stores and unlocks the folder. */
  close(): Promise<void>;
}

/** @throws DataFolderError when the folder is in use, of a newer format or unreadable */
export async function openEmbedded(options: EmbeddedOptions): Promise<EmbeddedStores> {
  const { path, lock } = await openDataFolder(options.dataDir);
  let eventStore: EmbeddedEventStore | undefined;
  let readStore: ReadStore | undefined;
  try {
    eventStore = openEventStore(join(path, 'log'), options.clock, options.logger);
    readStore = await openReadStore(join(path, 'read'), options.clock, options.logger);
    const [log, documents] = [eventStore, readStore];
    await makePrivate(0o700, [path, join(path, 'log'), join(path, 'read')]);
    const files = ['data.mdb', 'lock.mdb'].flatMap((name) => [join(path, 'log', name), join(path, 'read', name)]);
    await makePrivate(0o600, files);
    let closing: Promise<void> | undefined;
    return {
      eventStore: log,
      readStore: documents,
      close() {
        closing ??= (async () => {
          await Promise.allSettled([log.close(), documents.close()]);
          await lock.release();
        })();
        return closing;
      },
    };
  } catch (error) {
    await Promise.allSettled([eventStore?.close(), readStore?.close()]);
    await lock.release();
    throw new DataFolderError(`The stores in ${path} cannot be opened: ${errorText(error)}.`, { cause: error });
  }
}
