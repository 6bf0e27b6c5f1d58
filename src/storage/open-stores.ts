/**
 * Opens the two stores of an installation with the adapters that its settings name. No other file knows which adapters
 * exist. Waits for both stores at once and logs which one it waits for.
 * Implements `docs/contract/configuration.md#configuration`.
 */
import { sleep } from '../kernel/background.js';
import type { Clock } from '../kernel/clock.js';
import { ServiceError } from '../kernel/errors.js';
import type { Logger } from '../kernel/logger.js';
import { backoff, storeRetry } from '../kernel/retry.js';
import { openEmbedded } from './embedded/open-embedded.js';
import { openLogForReading } from './embedded/open-for-reading.js';
import type { EventStore, LogReader } from './event-store.js';
import type { ReadStore } from './read-store.js';
import { StoreAccessError } from './store-access.js';

export { DataFolderError, fullDisk } from './embedded/open-embedded.js';

/** How often a wait for a store is logged. */
const progressEveryMs = 30_000;

export interface StoreSettings {
  readonly dataDir: string;
  /** `esdb://…` or `kurrentdb://…`; without it, the log is in the data folder. */
  readonly eventStoreUrl?: string | undefined;
  /** `mongodb://…/database`; without it, the read models are in the data folder. */
  readonly mongoUrl?: string | undefined;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Ends the waiting. */
  readonly signal?: AbortSignal | undefined;
  /** Called with the reason for waiting, and with undefined when the wait for that store is over. */
  readonly onWaiting?: ((store: string, reason: string | undefined) => void) | undefined;
  /** How long to wait for a store that cannot be reached; without it, forever. */
  readonly giveUpMs?: number | undefined;
  /** Called once when another process has taken over the data folder, with a sentence for the operator. */
  readonly onTakenOver?: ((sentence: string) => void) | undefined;
}

export interface OpenStores {
  readonly eventStore: EventStore;
  readonly readStore: ReadStore;
  /** Writes what is queued and closes both stores. */
  close(): Promise<void>;
}

/** A setting names a store that cannot be opened; the message is one sentence that names the setting. */
export class StoreSettingError extends Error {
  override readonly name = 'StoreSettingError';
}

/**
 * Opens both stores.
 * @throws DataFolderError when the data folder cannot be used; StoreSettingError on a bad URL; ServiceError `unavailable`
 *   when a store was not reached within `giveUpMs` or the signal aborted
 */
export async function openStores(settings: StoreSettings): Promise<OpenStores> {
  const { eventStoreUrl, mongoUrl, dataDir, clock, logger, onTakenOver } = settings;
  const opened: { close(): Promise<void> }[] = [];
  const closeLater = <T extends { close(): Promise<void> }>(store: T): T => {
    opened.push(store);
    return store;
  };
  const close = async (): Promise<void> => {
    await Promise.allSettled(opened.splice(0).map((store) => store.close()));
  };
  // When one store can never be opened, stop waiting for the other.
  const failed = new AbortController();
  const signal = settings.signal === undefined ? failed.signal : AbortSignal.any([settings.signal, failed.signal]);
  const waiting: StoreSettings = { ...settings, signal };
  try {
    // Opens both embedded stores even if one is used: they share the data folder and its lock.
    const embedded =
      eventStoreUrl === undefined || mongoUrl === undefined
        ? closeLater(await openEmbedded({ dataDir, clock, logger, onTakenOver }))
        : undefined;
    const opening = [
      embedded !== undefined && eventStoreUrl === undefined
        ? Promise.resolve(embedded.eventStore)
        : openWhenThere('EventStoreDB', eventStoreUrl ?? '', waiting, openEventLog).then(closeLater),
      embedded !== undefined && mongoUrl === undefined
        ? Promise.resolve(embedded.readStore)
        : openWhenThere('MongoDB', mongoUrl ?? '', waiting, openReadModels).then(closeLater),
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

/** Opens the log alone, to read it beside running instances. @throws like `openStores` */
export async function openLog(
  settings: Omit<StoreSettings, 'mongoUrl'>,
): Promise<LogReader & { close(): Promise<void> }> {
  const { eventStoreUrl, dataDir, clock } = settings;
  if (eventStoreUrl === undefined) return openLogForReading(dataDir, clock);
  return openWhenThere('EventStoreDB', eventStoreUrl, settings, openEventLog);
}

/** The URL without credentials and options, which may be secret. */
function shownAddress(url: string): string {
  const [address = ''] = url.split('?');
  const [scheme = ''] = /^[a-z+]+:\/\//i.exec(address) ?? [];
  return scheme + address.slice(Math.max(scheme.length, address.lastIndexOf('@') + 1));
}

/** The message of the original error. */
function causeText(error: ServiceError): string {
  return error.cause instanceof Error ? error.cause.message : error.message;
}

/**
 * Retries until the store opens, for as long as the settings allow; a bad setting fails at once. Logs when it starts to
 * wait, every half minute while it waits, and when it is done.
 */
async function openWhenThere<T>(
  name: string,
  url: string,
  settings: StoreSettings,
  open: (settings: StoreSettings, url: string) => Promise<T>,
): Promise<T> {
  const { logger, signal, onWaiting = () => undefined, giveUpMs = Number.POSITIVE_INFINITY } = settings;
  const place = `${name} at ${shownAddress(url)}`;
  const began = performance.now();
  const waitedMs = (): number => Math.round(performance.now() - began);
  let loggedAtMs = Number.NEGATIVE_INFINITY;
  let told: string | undefined;
  for (let tries = 0; ; tries += 1) {
    try {
      const store = await open(settings, url);
      if (tries > 0) logger.info({ store: name, waited_ms: waitedMs() }, `${place} can be used now`);
      onWaiting(name, undefined);
      return store;
    } catch (error) {
      if (!(error instanceof ServiceError)) throw error;
      if (signal?.aborted === true || waitedMs() > giveUpMs) {
        throw error instanceof StoreAccessError
          ? error
          : new ServiceError('unavailable', `${name} cannot be reached`, { cause: error });
      }
      const problem = error instanceof StoreAccessError ? error.message : undefined;
      if (waitedMs() - loggedAtMs >= progressEveryMs || problem !== told) {
        loggedAtMs = waitedMs();
        told = problem;
        onWaiting(name, problem ?? `waiting for ${name}`);
        const fields = { store: name, waited_ms: loggedAtMs, error: causeText(error) };
        if (problem === undefined) logger.warn(fields, `waiting for ${place}`);
        else logger.error({ ...fields, problem }, `${place} cannot be used before somebody acts`);
      }
      await sleep(backoff(storeRetry, tries), signal);
    }
  }
}

/** Imports the adapter on demand: an embedded installation does not need its client library. */
async function openEventLog({ clock, logger }: StoreSettings, url: string): Promise<EventStore> {
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
