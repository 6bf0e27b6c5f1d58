/**
 * Opens the two stores of an installation, whichever adapters its settings name: the one place that knows which there
 * are. Stores that are not there yet are waited for, both at once, and the log says for which. Not what is done with them.
 * Implements `docs/contract/configuration.md` (SVC_DATA_DIR, SVC_EVENTSTORE_URL, SVC_MONGODB_URL).
 */
import { sleep } from '../kernel/background.js';
import type { Clock } from '../kernel/clock.js';
import { ServiceError } from '../kernel/errors.js';
import type { Logger } from '../kernel/logger.js';
import { backoff, storeRetry } from '../kernel/retry.js';
import { openEmbedded } from './embedded/open-embedded.js';
import type { EventStore } from './event-store.js';
import type { ReadStore } from './read-store.js';

export { DataFolderError } from './embedded/open-embedded.js';

/** How often the log says that a store is still waited for. */
const progressEveryMs = 30_000;

export interface StoreSettings {
  readonly dataDir: string;
  /** `esdb://…`; absent: the log is in the data folder. */
  readonly eventStoreUrl?: string | undefined;
  /** `mongodb://…/database`; absent: the read models are in the data folder. */
  readonly mongoUrl?: string | undefined;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Ends the waiting. */
  readonly signal?: AbortSignal | undefined;
  /** How long a store that cannot be reached is waited for; absent: for ever. */
  readonly giveUpMs?: number | undefined;
}

export interface OpenStores {
  readonly eventStore: EventStore;
  readonly readStore: ReadStore;
  /** Writes what waits and closes both. */
  close(): Promise<void>;
}

/** The settings name a store that cannot be opened; the message is one sentence that names the setting. */
export class StoreSettingError extends Error {
  constructor(message: string, options: { cause?: unknown } = {}) {
    super(message, options);
    this.name = 'StoreSettingError';
  }
}

/**
 * @throws DataFolderError when the data folder cannot be used; StoreSettingError when a URL cannot; ServiceError
 *   `unavailable` when a store was not reached in `giveUpMs`, or the signal ended the waiting
 */
export async function openStores(settings: StoreSettings): Promise<OpenStores> {
  const { eventStoreUrl, mongoUrl, dataDir, clock, logger } = settings;
  const opened: { close(): Promise<void> }[] = [];
  const keep = <T extends { close(): Promise<void> }>(store: T): T => {
    opened.push(store);
    return store;
  };
  const close = async (): Promise<void> => {
    await Promise.allSettled(opened.splice(0).map((store) => store.close()));
  };
  // When one of them can never be opened, the other is not waited for any longer.
  const failed = new AbortController();
  const signal = settings.signal === undefined ? failed.signal : AbortSignal.any([settings.signal, failed.signal]);
  const waiting: StoreSettings = { ...settings, signal };
  try {
    // Where one of the two is embedded, the folder's lock is on both.
    const embedded =
      eventStoreUrl === undefined || mongoUrl === undefined
        ? keep(await openEmbedded({ dataDir, clock, logger }))
        : undefined;
    const opening = [
      embedded !== undefined && eventStoreUrl === undefined
        ? Promise.resolve(embedded.eventStore)
        : patiently('EventStoreDB', eventStoreUrl ?? '', waiting, openLog).then(keep),
      embedded !== undefined && mongoUrl === undefined
        ? Promise.resolve(embedded.readStore)
        : patiently('MongoDB', mongoUrl ?? '', waiting, openReadModels).then(keep),
    ] as const;
    try {
      const [eventStore, readStore] = await Promise.all(opening);
      return { eventStore, readStore, close };
    } catch (error) {
      failed.abort();
      await Promise.allSettled(opening);
      throw error;
    }
  } catch (error) {
    await close();
    throw error;
  }
}

/** The URL without what may be secret: credentials and options. */
function shownAddress(url: string): string {
  const [address = ''] = url.split('?');
  const [scheme = ''] = /^[a-z+]+:\/\//.exec(address) ?? [];
  return scheme + address.slice(Math.max(scheme.length, address.lastIndexOf('@') + 1));
}

/** What went wrong, in the words of whoever met it first. */
function causeText(error: ServiceError): string {
  return error.cause instanceof Error ? error.cause.message : error.message;
}

/**
 * Tries until it works, for as long as the settings say; a fault of the settings ends it at once. Says so when it begins
 * to wait, every half minute while it does, and when it is over.
 */
async function patiently<T>(
  name: string,
  url: string,
  settings: StoreSettings,
  open: (settings: StoreSettings, url: string) => Promise<T>,
): Promise<T> {
  const { logger, signal, giveUpMs = Number.POSITIVE_INFINITY } = settings;
  const place = `${name} at ${shownAddress(url)}`;
  const began = performance.now();
  const waitedMs = (): number => Math.round(performance.now() - began);
  let told = Number.NEGATIVE_INFINITY;
  for (let tries = 0; ; tries += 1) {
    try {
      const store = await open(settings, url);
      if (tries > 0) logger.info({ store: name, waited_ms: waitedMs() }, `${place} can be used now`);
      return store;
    } catch (error) {
      if (!(error instanceof ServiceError)) throw error;
      if (signal?.aborted === true || waitedMs() > giveUpMs) {
        throw new ServiceError('unavailable', `${name} cannot be reached`, { cause: error });
      }
      if (waitedMs() - told >= progressEveryMs) {
        told = waitedMs();
        logger.warn({ store: name, waited_ms: told, error: causeText(error) }, `waiting for ${place}`);
      }
      await sleep(backoff(storeRetry, tries), signal);
    }
  }
}

/** Loaded when it is asked for only: the client libraries are of no use to an embedded installation. */
async function openLog({ clock, logger }: StoreSettings, url: string): Promise<EventStore> {
  const { openEventStoreDb } = await import('./eventstoredb/open.js');
  let store: EventStore | undefined;
  try {
    store = openEventStoreDb({ url, logger, clock });
    await store.ping();
    return store;
  } catch (error) {
    await store?.close();
    if (!(error instanceof TypeError)) throw error;
    throw new StoreSettingError(`SVC_EVENTSTORE_URL: ${error.message}`, { cause: error });
  }
}

async function openReadModels({ logger }: StoreSettings, url: string): Promise<ReadStore> {
  const { openMongoDb } = await import('./mongodb/open-mongodb.js');
  try {
    return await openMongoDb({ url, logger });
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    throw new StoreSettingError(`SVC_MONGODB_URL: ${error.message}`, { cause: error });
  }
}
