/**
 * The keyring of an installation in the log. `svc-keyring` holds the newest version, wrapped; `svc-service` records its
 * number and digest, so that nobody can put back an older one. `src/security/keyring.ts` seals with it. Implements
 * `docs/contract/domain.md#commands-and-events`, secrets.
 */
import { propose } from '../../commands/proposal.js';
import { systemContext } from '../../commands/system.js';
import { tuning } from '../../commands/tuning.js';
import { readEvent } from '../../domain/log/upcast.js';
import type { KeyringWrapped } from '../../domain/service/identity.js';
import { sleep } from '../../kernel/background.js';
import type { Clock } from '../../kernel/clock.js';
import { ServiceError } from '../../kernel/errors.js';
import { eventOf, streams } from '../../kernel/event.js';
import type { Ids } from '../../kernel/ids.js';
import { backoff, storeRetry } from '../../kernel/retry.js';
import {
  digestOf,
  newKeyring,
  outdatedText,
  unwrapKeyring,
  wrapKeyring,
  type KeyringContent,
  type WrappedKeyring,
} from '../../security/keyring.js';
import type { MasterKey } from '../../security/master-key.js';
import { createLogChain, logChainKeyOf, type LogChain } from '../../security/log-chain/log-chain.js';
import { lastRevision, newestEvent, type AppendOutcome, type EventStore } from '../../storage/event-store.js';
import { ownEvent } from '../../storage/broken-log.js';
import { readService, writeService, type ServiceStreamOptions } from './service-stream.js';

export interface KeyringOptions {
  readonly eventStore: EventStore;
  readonly masterKey: MasterKey;
  readonly clock: Clock;
  readonly ids: Ids;
}

/** The master key does not open the keyring, or the keyring is not the installation's newest; the message says why. */
export class WrongMasterKeyError extends Error {}

/** A keyring from the log. */
export interface StoredKeyring {
  readonly content: KeyringContent;
  /** Its revision in `svc-keyring`. */
  readonly revision: number;
  /** The installation's log chain, under the keyring's key. */
  readonly logChain: LogChain;
}

/**
 * The keyring of this installation, created if it does not exist.
 * @throws WrongMasterKeyError, BrokenChainError, ServiceError `unavailable`
 */
export async function ensureKeyring(options: KeyringOptions): Promise<StoredKeyring> {
  const { eventStore, masterKey } = options;
  for (let tries = 0; tries < tuning.gatewayAttempts; tries += 1) {
    const stored = await storedKeyring(options);
    if (stored !== undefined) return stored;
    if ((await lastRevision(eventStore, streams.service)) !== undefined) {
      throw new WrongMasterKeyError(`the log lacks the keyring of its installation: ${streams.keyring} is empty`);
    }
    // Reading it back shows which append was written: this one, another or none.
    await append(options, -1, wrapKeyring(masterKey, newKeyring()));
    await sleep(tries === 0 ? 0 : backoff(storeRetry, tries - 1));
  }
  throw new ServiceError('unavailable', 'the event store did not take the keyring of the service');
}

/**
 * The newest keyring; undefined before the first start.
 * @throws WrongMasterKeyError, BrokenChainError, ServiceError `unavailable`
 */
export async function storedKeyring({
  eventStore,
  masterKey,
}: Pick<KeyringOptions, 'eventStore' | 'masterKey'>): Promise<StoredKeyring | undefined> {
  const stored = await wrappedKeyring(eventStore);
  if (stored === undefined) return undefined;
  const { wrapped, revision } = stored;
  const content = openWrappedKeyring(masterKey, wrapped);
  const logChain = createLogChain(logChainKeyOf(content));
  const outdated = outdatedText(wrapped, (await readService({ eventStore, logChain })).keyring);
  if (outdated !== undefined) throw new WrongMasterKeyError(outdated);
  return { content, revision, logChain };
}

/** @throws WrongMasterKeyError */
export function openWrappedKeyring(masterKey: MasterKey, wrapped: WrappedKeyring): KeyringContent {
  const content = unwrapKeyring(masterKey, wrapped);
  if (content !== undefined) return content;
  throw new WrongMasterKeyError(
    wrapped.master_key_id === masterKey.keyId
      ? 'the keyring in the event log was altered and cannot be opened'
      : `the master key ${masterKey.keyId} is not the one that the keyring of this installation is wrapped by, ` +
          `${wrapped.master_key_id}; if it was being replaced, run keys:rotate-master again`,
  );
}

/** Records the keyring's version in `svc-service`, unless it is recorded. @throws ServiceError `unavailable` */
export async function recordKeyring(options: ServiceStreamOptions): Promise<void> {
  const stored = await wrappedKeyring(options.eventStore);
  if (stored === undefined) return;
  const { installation_id, version } = stored.wrapped;
  await writeService(options, 'keyring', ({ keyring: recorded }) => {
    if (recorded !== undefined && recorded.version >= version) return undefined;
    return { type: 'KeyringRecorded', data: { installation_id, version, digest: digestOf(stored.wrapped) } };
  });
}

/**
 * Replaces the stored keyring with another version of it.
 * @throws ServiceError `unavailable`, also when somebody else has replaced it
 */
export async function replaceKeyring(
  options: KeyringOptions,
  { revision, logChain }: StoredKeyring,
  content: KeyringContent,
): Promise<void> {
  const wrapped = wrapKeyring(options.masterKey, content);
  const outcome = await append(options, revision, wrapped);
  const now = await wrappedKeyring(options.eventStore);
  if (now === undefined || digestOf(now.wrapped) !== digestOf(wrapped)) {
    throw new ServiceError('unavailable', `the event store did not take the new keyring (${outcome.kind})`);
  }
  await recordKeyring({ ...options, logChain });
}

async function wrappedKeyring(
  eventStore: EventStore,
): Promise<{ readonly wrapped: WrappedKeyring; readonly revision: number } | undefined> {
  const event = await newestEvent(eventStore, streams.keyring);
  if (event === undefined) return undefined;
  const { data } = eventOf<KeyringWrapped>(streams.keyring, readEvent(ownEvent(event)));
  return { wrapped: data, revision: event.revision };
}

function append(
  { eventStore, clock, ids }: KeyringOptions,
  revision: number,
  data: WrappedKeyring,
): Promise<AppendOutcome> {
  const event: KeyringWrapped = { type: 'KeyringWrapped', data };
  const { events } = propose([event], systemContext('keyring'), clock, ids);
  return eventStore.append(streams.keyring, revision < 0 ? 'no_stream' : revision, events);
}
