/**
 * Opens an installation: its stores, its keyring and its log chain under the master key, and its identity. Refuses one
 * that must not be served: an unfinished import, read models of another log, or a read store of another installation.
 */
import { BrokenChainError } from '../../domain/log-chain/links.js';
import type { Clock } from '../../kernel/clock.js';
import type { Closers } from '../../kernel/closers.js';
import { errorText, ServiceError } from '../../kernel/errors.js';
import { streams } from '../../kernel/event.js';
import { formatHostPort, type HostPort } from '../../kernel/host-port.js';
import type { Ids } from '../../kernel/ids.js';
import type { Logger } from '../../kernel/logger.js';
import type { LogChain } from '../../security/log-chain/log-chain.js';
import { watchStoreClocks, type StoreClocks } from '../../instance/store-clocks.js';
import { ofAnotherLog } from '../../projections/engine/another-log.js';
import { createKeyring, type Keyring } from '../../security/keyring.js';
import { loadMasterKey, type MasterKey } from '../../security/master-key.js';
import { BrokenLogError } from '../../storage/broken-log.js';
import { lastRevision, type EventStore } from '../../storage/event-store.js';
import { readImportMarker } from '../../storage/log-archive/import-log.js';
import { DataFolderError, openStores, StoreSettingError, type OpenStores } from '../../storage/open-stores.js';
import { asBound, bindReadStore, ofAnotherInstallation, remedyFor, type BoundReadStore } from './read-store-binding.js';
import { ensureKeyring, recordKeyring, WrongMasterKeyError } from './keyring.js';
import { ensureServiceIdentity, type ServiceIdentity } from './service-identity.js';

/** The start cannot go on; the message is a sentence for the person who started the service. */
export class StartError extends Error {}

export const cannotListen =
  (setting: string, address: HostPort) =>
  (error: unknown): never => {
    throw new StartError(`Nothing can listen on ${setting} ${formatHostPort(address)}: ${errorText(error)}.`);
  };

/** A log that is not proven is not served. @param found what does not match, without a full stop */
export const damagedLog = (found: string): StartError =>
  new StartError(`The start is refused: ${found}. What to do is in docs/how-to/restore.md, "A damaged log".`);

export interface InstallationSettings {
  readonly dataDir: string;
  readonly eventStoreUrl: string | undefined;
  readonly mongoUrl: string | undefined;
  readonly masterKey: { readonly inline: string | undefined; readonly file: string | undefined };
}

export interface InstallationDeps {
  readonly clock: Clock;
  readonly ids: Ids;
  readonly logger: Logger;
  readonly closers: Closers;
  /** Called when another process has taken over the data folder, with a sentence for the operator. */
  onTakenOver(sentence: string): void;
  /** See `StoreSettings`. */
  readonly onWaiting?: (store: string, reason: string | undefined) => void;
  /** For tests. */
  readonly openStores?: typeof openStores | undefined;
}

export interface Installation {
  readonly eventStore: EventStore;
  readonly readStore: BoundReadStore;
  readonly keyring: Keyring;
  readonly logChain: LogChain;
  readonly identity: ServiceIdentity;
  readonly clocks: StoreClocks;
}

/** Adds everything it opens to `closers`, even if opening fails. @throws StartError, ServiceError `unavailable` */
export async function openInstallation(settings: InstallationSettings, deps: InstallationDeps): Promise<Installation> {
  try {
    return await open(settings, deps);
  } catch (error) {
    if (error instanceof BrokenChainError || error instanceof BrokenLogError) throw damagedLog(error.message);
    const ofTheOperator =
      error instanceof DataFolderError || error instanceof StoreSettingError || error instanceof WrongMasterKeyError;
    throw ofTheOperator ? new StartError(error.message) : error;
  }
}

async function open(settings: InstallationSettings, deps: InstallationDeps): Promise<Installation> {
  const { dataDir, eventStoreUrl, mongoUrl } = settings;
  const { clock, ids, logger, closers, onTakenOver, onWaiting } = deps;
  const stores = await (deps.openStores ?? openStores)({
    dataDir,
    eventStoreUrl,
    mongoUrl,
    clock,
    logger,
    onTakenOver,
    onWaiting,
  });
  closers.add('stores', stores);
  const { eventStore, readStore: opened } = stores;
  if ((await readImportMarker(opened))?.state === 'running') {
    throw new StartError('The stores hold an unfinished import: run log:import with the same file again.');
  }
  const refuse = (found: string): never => {
    throw new StartError(`The start is refused: ${found}. ${remedyFor(dataDir)}`);
  };
  const refuseAnother = async (): Promise<void> => {
    const another = await ofAnotherInstallation(eventStore, opened);
    if (another !== undefined) refuse(another);
  };
  await refuseAnother();
  const foreign = await ofAnotherLog(eventStore, await asBound(opened));
  if (foreign !== undefined) refuse(foreign);
  const masterKey = await openMasterKey(settings, stores);
  const clocks = await watchStoreClocks({
    stores: { 'event store': eventStore, 'read store': opened },
    clock,
    logger,
  });
  closers.add('store clocks', clocks);
  const [wrongClock] = clocks.problems();
  if (wrongClock !== undefined && (await lastRevision(eventStore, streams.service)) === undefined) {
    // There is nothing to serve yet, and a wrong clock must not write the installation's first event.
    throw new ServiceError('unavailable', wrongClock);
  }
  const { content, logChain } = await ensureKeyring({ eventStore, masterKey, clock, ids });
  const keyring = closers.add('keyring', createKeyring(content));
  const identity = await ensureServiceIdentity({ eventStore, keyring, logChain, clock, ids });
  await recordKeyring({ eventStore, logChain, clock, ids });
  const readStore = await bindReadStore(opened, identity.installationId);
  // Another installation may have bound it meanwhile.
  await refuseAnother();
  return { eventStore, readStore, keyring, logChain, identity, clocks };
}

/**
 * A missing master key is generated only for an installation without secrets: a lost one must not be replaced silently.
 * @throws StartError
 */
async function openMasterKey(
  { masterKey, dataDir }: InstallationSettings,
  { eventStore }: OpenStores,
): Promise<MasterKey> {
  const mayCreate = (await lastRevision(eventStore, streams.service)) === undefined;
  const loaded = await loadMasterKey({ ...masterKey, dataDir, mayCreate });
  if (!loaded.ok) throw new StartError(`The master key cannot be used: ${loaded.error}.`);
  return loaded.value.masterKey;
}
