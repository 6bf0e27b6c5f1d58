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
import { lockFolderName } from './folder-lock.js';
import { openEventStore, type EmbeddedEventStore } from './log/event-store.js';
import { createOwnership } from './ownership.js';
import { openReadStore } from './read/read-store.js';

export { DataFolderError } from './data-folder.js';

export interface EmbeddedOptions {
  readonly dataDir: string;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Called once, when another process has taken over the folder: nothing can be written any more. */
  readonly onTakenOver?: ((sentence: string) => void) | undefined;
}

export interface EmbeddedStores {
  readonly eventStore: EmbeddedEventStore;
  readonly readStore: ReadStore;
  /** Writes what is queued, closes both stores and unlocks the folder. */
  close(): Promise<void>;
}

/** @throws DataFolderError when the folder is in use, of a newer format or unreadable */
export async function openEmbedded(options: EmbeddedOptions): Promise<EmbeddedStores> {
  const { path, log: logPath, read: readPath, unlock } = await openDataFolder(options.dataDir);
  const { clock, logger } = options;
  const ownership = createOwnership((reason) => {
    logger.error({ path }, reason);
    options.onTakenOver?.(`The data folder ${path} cannot be used any more: ${reason}.`);
  });
  let eventStore: EmbeddedEventStore | undefined;
  let readStore: ReadStore | undefined;
  try {
    eventStore = openEventStore(logPath, ownership, clock, logger);
    readStore = await openReadStore(readPath, ownership, clock, logger);
    const [log, documents] = [eventStore, readStore];
    const folders = [logPath, readPath, join(path, lockFolderName)];
    await makePrivate(0o700, [path, ...folders]);
    const files = folders.flatMap((folder) => ['data.mdb', 'lock.mdb'].map((name) => join(folder, name)));
    await makePrivate(0o600, files);
    let closing: Promise<void> | undefined;
    return {
      eventStore: log,
      readStore: documents,
      close() {
        closing ??= (async () => {
          await Promise.allSettled([log.close(), documents.close()]);
          await unlock();
        })();
        return closing;
      },
    };
  } catch (error) {
    await Promise.allSettled([eventStore?.close(), readStore?.close()]);
    await unlock();
    throw new DataFolderError(`The stores in ${path} cannot be opened: ${errorText(error)}.`, { cause: error });
  }
}
