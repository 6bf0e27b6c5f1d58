/**
 * The installation that a maintenance command works on: opens the stores that the environment names, as the service
 * does.
 */
import { join } from 'node:path';
import { readConfig, type Config } from '../../src/app/config/config.js';
import { systemClock } from '../../src/kernel/clock.js';
import { groupName, groupVersion } from '../../src/projections/read-models.js';
import { asBound, ofAnotherInstallation, remedyFor } from '../../src/app/installation/read-store-binding.js';
import { readImportMarker } from '../../src/storage/log-archive/import-log.js';
import type { LogReader } from '../../src/storage/event-store.js';
import { watchForeignEvents } from '../../src/storage/foreign-events.js';
import { DataFolderError, openLog, openStores, type OpenStores } from '../../src/storage/open-stores.js';
import { liveInstances } from '../../src/instance/instance-lease.js';
import { CommandError, isReadable, plainLogger } from './command-line.js';

/** Projections that must not have started where an archive is imported. */
export const importedProjections = [{ name: groupName, version: groupVersion }] as const;

export interface Installation extends OpenStores {
  readonly config: Config;
  /** Where it is, for messages. */
  readonly name: string;
}

export interface InstallationOptions {
  readonly signal: AbortSignal;
  /** The installation may be missing: only for an import. */
  readonly mayBeNew?: boolean;
  /** The stores may hold an unfinished import: only for an import that continues. */
  readonly mayBeHalf?: boolean;
}

/** @param why the consequence, as the end of a sentence @throws CommandError while instances run */
export async function refuseRunning(readStore: OpenStores['readStore'], why: string): Promise<void> {
  const { length } = await liveInstances(readStore);
  if (length === 0) return;
  throw new CommandError(
    `${length} instances run on these stores, or died less than 10 s ago: stop all of them first, because ${why}.`,
  );
}

/** How long to wait for an external store. */
const giveUpMs = 30_000;

/** @throws CommandError where the environment names a data folder without an installation */
async function assertInstalled(dataDir: string): Promise<void> {
  if (await isReadable(join(dataDir, 'format.json'))) return;
  throw new CommandError(`The data folder ${dataDir} holds no installation: set SVC_DATA_DIR to the folder of one.`);
}

/** The log alone, for reading while the service runs. */
export interface InstalledLog {
  readonly config: Config;
  readonly eventStore: LogReader;
  /** Where it is, for messages. */
  readonly name: string;
  close(): Promise<void>;
}

/** @throws ConfigError, CommandError, DataFolderError, ServiceError `unavailable` */
export async function openInstalledLog(signal: AbortSignal): Promise<InstalledLog> {
  const config = readConfig(process.env);
  const { dataDir, eventStoreUrl } = config;
  if (eventStoreUrl === undefined) await assertInstalled(dataDir);
  const log = await openLog({ dataDir, eventStoreUrl, clock: systemClock, logger: plainLogger, signal, giveUpMs });
  const name = eventStoreUrl === undefined ? dataDir : 'EventStoreDB';
  const { eventStore } = watchForeignEvents(log, plainLogger);
  return { config, eventStore, name, close: () => log.close() };
}

/** @throws ConfigError, CommandError, ServiceError `unavailable` */
export async function openInstallation(options: InstallationOptions): Promise<Installation> {
  const config = readConfig(process.env);
  const { dataDir, eventStoreUrl, mongoUrl } = config;
  const embedded = eventStoreUrl === undefined || mongoUrl === undefined;
  if (embedded && options.mayBeNew !== true) await assertInstalled(dataDir);
  let stores: OpenStores;
  try {
    const clock = systemClock;
    stores = await openStores({
      dataDir,
      eventStoreUrl,
      mongoUrl,
      clock,
      logger: plainLogger,
      giveUpMs,
      ...options,
    });
  } catch (error) {
    if (!(error instanceof DataFolderError)) throw error;
    throw new CommandError(`${error.message} Only one process can open embedded stores: stop the service first.`);
  }
  try {
    if (options.mayBeHalf !== true && (await readImportMarker(stores.readStore))?.state === 'running') {
      throw new CommandError('These stores hold an unfinished import: run log:import with the same file again.');
    }
    const another =
      options.mayBeNew === true ? undefined : await ofAnotherInstallation(stores.eventStore, stores.readStore);
    if (another !== undefined) throw new CommandError(`Nothing is done: ${another}. ${remedyFor(dataDir)}`);
  } catch (error) {
    await stores.close();
    throw error;
  }
  const place = [eventStoreUrl === undefined ? dataDir : 'EventStoreDB', mongoUrl === undefined ? dataDir : 'MongoDB'];
  const { eventStore } = watchForeignEvents(stores.eventStore, plainLogger);
  const readStore = await asBound(stores.readStore);
  return { ...stores, eventStore, readStore, config, name: [...new Set(place)].join(' and ') };
}
