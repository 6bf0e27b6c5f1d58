/**
 * The keyring of an installation, in the log: made at the first start, opened by every later one, replaced by a new
 * version when a master key or a sealing key is rotated. `svc-keyring` holds the newest version, wrapped; `svc-service`
 * records its number and digest, so that nobody can put an older one in its place. `src/security/keyring.ts` seals with
 * them. Implements `docs/contract/domain.md#commands-and-events`, secrets.
 */
import { propose } from '../../commands/proposal.js';
import { systemContext } from '../../commands/system.js';
import { tuning } from '../../commands/tuning.js';
import { readEvent } from '../../domain/log/upcast.js';
import type { ServiceEvent, KeyringWrapped } from '../../domain/service/identity.js';
import { serviceEvent } from '../../domain/service/identity.js';
import { sleep } from '../../kernel/background.js';
import type { Clock } from '../../kernel/clock.js';
import { ServiceError } from '../../kernel/errors.js';
import { streams } from '../../kernel/event.js';
import type { Ids } from '../../kernel/ids.js';
import { backoff, storeRetry } from '../../kernel/retry.js';
import type { KeyringContent, WrappedKeyring } from '../../security/keyring.js';
import type { MasterKey } from '../../security/master-key.js';
import { digestOf, newKeyring, unwrapKeyring, wrapKeyring } from '../../security/keyring.js';
import type { AppendOutcome, EventStore } from '../../storage/event-store.js';
import { lastRevision, newestEvent, wholeStream } from '../../storage/event-store.js';

export interface KeyringOptions {
  readonly eventStore: EventStore;
  readonly masterKey: MasterKey;
  readonly clock: Clock;
  readonly ids: Ids;
}

/** The master key does not open the keyring, or the keyring is not the installation's newest; the message says why. */
export class WrongMasterKeyError extends Error {}

/** A keyring of the log, and the revision of `svc-keyring` that holds it. */
export interface StoredKeyring {
  readonly content: KeyringContent;
  readonly revision: number;
}

/** The keyring of this installation, created if it does not exist. @throws WrongMasterKeyError, ServiceError `unavailable` */
export async function ensureKeyring(options: KeyringOptions): Promise<StoredKeyring> {
  const { eventStore, masterKey } = options;
  for (let tries = 0; tries < tuning.gatewayAttempts; tries += 1) {
    const stored = await storedKeyring(options);
    if (stored !== undefined) return stored;
    if ((await lastRevision(eventStore, streams.service)) !== undefined) {
      throw new WrongMasterKeyError(`the log lacks the keyring of its installation: ${streams.keyring} is empty`);
    }
    // Reading it back shows whether this append, another or none was written.
    await append(options, streams.keyring, -1, { type: 'KeyringWrapped', data: wrapKeyring(masterKey, newKeyring()) });
    await sleep(tries === 0 ? 0 : backoff(storeRetry, tries - 1));
  }
  throw new ServiceError('unavailable', 'the event store did not take the keyring of the service');
}

/** The newest keyring; undefined before the first start. @throws WrongMasterKeyError, ServiceError `unavailable` */
export async function storedKeyring({
  eventStore,
  masterKey,
}: Pick<KeyringOptions, 'eventStore' | 'masterKey'>): Promise<StoredKeyring | undefined> {
  const stored = await wrappedKeyring(eventStore);
  if (stored === undefined) return undefined;
  const { wrapped, revision } = stored;
  const content = unwrapKeyring(masterKey, wrapped);
  if (content === undefined) {
    throw new WrongMasterKeyError(
      wrapped.master_key_id === masterKey.keyId
        ? 'the keyring in the event log was altered and cannot be opened'
        : `the master key ${masterKey.keyId} is not the one that the keyring of this installation is wrapped by, ` +
            `${wrapped.master_key_id}; if it was being replaced, run keys:rotate-master again`,
    );
  }
  const recorded = await recordedKeyring(eventStore);
  const isNewest =
    recorded === undefined ||
    recorded.version < wrapped.version ||
    (recorded.version === wrapped.version && recorded.digest === digestOf(wrapped));
  if (!isNewest) {
    throw new WrongMasterKeyError(
      `the keyring in the event log is version ${wrapped.version}, and the installation has recorded version ` +
        `${recorded.version} of another content: the log was altered, or put together of two backups`,
    );
  }
  return { content, revision };
}

/** Records the keyring's version in `svc-service`, unless it is recorded. @throws ServiceError `unavailable` */
export async function recordKeyring(options: Omit<KeyringOptions, 'masterKey'>): Promise<void> {
  const { eventStore } = options;
  for (let tries = 0; tries < tuning.gatewayAttempts; tries += 1) {
    const stored = await wrappedKeyring(eventStore);
    const recorded = await recordedKeyring(eventStore);
    if (stored === undefined || (recorded?.version ?? 0) >= stored.wrapped.version) return;
    const { installation_id, version } = stored.wrapped;
    const data = { installation_id, version, digest: digestOf(stored.wrapped) };
    const revision = (await lastRevision(eventStore, streams.service)) ?? -1;
    await append(options, streams.service, revision, { type: 'KeyringRecorded', data });
    await sleep(tries === 0 ? 0 : backoff(storeRetry, tries - 1));
  }
  throw new ServiceError('unavailable', 'the event store did not take the version of the keyring');
}

/**
 * Replaces the stored keyring by another version of it.
 * @throws ServiceError `unavailable`, also when somebody else has replaced it
 */
export async function replaceKeyring(
  options: KeyringOptions,
  { revision }: StoredKeyring,
  content: KeyringContent,
): Promise<void> {
  const wrapped = wrapKeyring(options.masterKey, content);
  const outcome = await append(options, streams.keyring, revision, { type: 'KeyringWrapped', data: wrapped });
  const now = await wrappedKeyring(options.eventStore);
  if (now === undefined || digestOf(now.wrapped) !== digestOf(wrapped)) {
    throw new ServiceError('unavailable', `the event store did not take the new keyring (${outcome.kind})`);
  }
  await recordKeyring(options);
}

async function wrappedKeyring(
  eventStore: EventStore,
): Promise<{ readonly wrapped: WrappedKeyring; readonly revision: number } | undefined> {
  const event = await newestEvent(eventStore, streams.keyring);
  if (event === undefined) return undefined;
  const { data } = readEvent(event) as unknown as KeyringWrapped;
  return { wrapped: data, revision: event.revision };
}

/** The newest record of `svc-service`, a stream of a few events. */
async function recordedKeyring(
  eventStore: EventStore,
): Promise<{ readonly version: number; readonly digest: string } | undefined> {
  let newest: Extract<ServiceEvent, { readonly type: 'KeyringRecorded' }> | undefined;
  for await (const recorded of wholeStream(eventStore, streams.service)) {
    const event = serviceEvent(readEvent(recorded));
    if (event.type === 'KeyringRecorded') newest = event;
  }
  return newest?.data;
}

function append(
  { eventStore, clock, ids }: Pick<KeyringOptions, 'eventStore' | 'clock' | 'ids'>,
  stream: string,
  revision: number,
  event: KeyringWrapped | ServiceEvent,
): Promise<AppendOutcome> {
  const { events } = propose([event], systemContext('keyring'), clock, ids);
  return eventStore.append(stream, revision < 0 ? 'no_stream' : revision, events);
}
