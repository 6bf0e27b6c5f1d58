/**
 * The service's own keys: an X25519 pair that agents pin and an Ed25519 key that signs tokens. Created at the first start
 * and shared by all instances through the stream `svc-service`; the append expects no stream, so of two first starts one
 * wins. `signing-key.ts` replaces the key that signs tokens. Implements `docs/contract/agent-protocol.md#psk-verifier-service-identity`.
 */
import type { SealedSecret } from '../../domain/secret/sealed.js';
import type { ServiceEvent, ServiceKeyEvent } from '../../domain/service/identity.js';
import { bringsSigningKey, serviceEvent } from '../../domain/service/identity.js';
import { readEvent } from '../../domain/log/upcast.js';
import { sleep } from '../../kernel/background.js';
import type { Clock } from '../../kernel/clock.js';
import { generateX25519 } from '../../kernel/crypto/crypto.js';
import { ServiceError } from '../../kernel/errors.js';
import { streams } from '../../kernel/event.js';
import type { Ids } from '../../kernel/ids.js';
import { backoff } from '../../kernel/retry.js';
import type { RetryPolicy } from '../../kernel/retry.js';
import type { Keyring, Place } from '../../security/keyring.js';
import { generateTokenSeed, tokenKeysFrom } from '../../security/tokens.js';
import type { EventStore } from '../../storage/event-store.js';
import { firstFrom, wholeStream } from '../../storage/event-store.js';
import { propose } from '../../commands/proposal.js';
import { systemContext } from '../../commands/system.js';
import { tuning } from '../../commands/tuning.js';
import { WrongMasterKeyError } from './keyring.js';

export interface ServiceIdentity {
  readonly installationId: string;
  /** 32 bytes. */
  readonly staticPublic: Uint8Array;
  readonly staticPrivate: Uint8Array;
  /** 32-byte Ed25519 seed of the newest key that signs tokens. */
  readonly signingSeed: Uint8Array;
  /** Its public key, base64url. */
  readonly signingPublic: string;
  /** The last event of `svc-service` that was read. */
  readonly at: { readonly revision: number; readonly position: number };
}

export interface ServiceIdentityOptions {
  readonly eventStore: EventStore;
  readonly keyring: Keyring;
  readonly clock: Clock;
  readonly ids: Ids;
}

/** Instances that start at the same time may all try to write the first identity. */
const conflictRetry: RetryPolicy = { firstMs: 50, maxMs: 2_000 };

const place = (installationId: string, field: string): Place => ({
  stream: streams.service,
  resourceId: installationId,
  field,
});
/** The place of a key for tokens. */
export const signingPlace = (installationId: string): Place => place(installationId, 'signing_private');
export const base64url = (bytes: Uint8Array): string => Buffer.from(bytes).toString('base64url');

/** The identity of this installation, created if it does not exist. @throws WrongMasterKeyError, ServiceError `unavailable` */
export async function ensureServiceIdentity(options: ServiceIdentityOptions): Promise<ServiceIdentity> {
  for (let tries = 0; tries < tuning.gatewayAttempts; tries += 1) {
    const stored = await readIdentity(options);
    if (stored !== undefined) return stored;
    await appendIdentity(options);
    if (tries > 0) await sleep(backoff(conflictRetry, tries));
  }
  throw new ServiceError('unavailable', 'the event store did not take the identity of the service');
}

async function readIdentity({ eventStore, keyring }: ServiceIdentityOptions): Promise<ServiceIdentity | undefined> {
  const recorded = await firstFrom(eventStore, streams.service, 'start');
  const newest = await newestSigningKey(eventStore);
  if (recorded === undefined || newest === undefined) return undefined;
  const { type, data } = serviceEvent(readEvent(recorded));
  if (type !== 'ServiceIdentityCreated') throw new Error(`${streams.service} begins with ${type}`);
  return {
    installationId: data.installation_id,
    staticPublic: Buffer.from(data.static_public, 'base64url'),
    staticPrivate: openOrRefuse(keyring, data.static_private, place(data.installation_id, 'static_private')),
    signingSeed: openSigningSeed(keyring, newest.event),
    signingPublic: newest.event.data.signing_public,
    at: newest.at,
  };
}

/** The event of `svc-service` that brought the key which signs tokens now, and where the stream ends. */
export async function newestSigningKey(
  eventStore: EventStore,
): Promise<{ readonly event: ServiceKeyEvent; readonly at: ServiceIdentity['at'] } | undefined> {
  let newest: { readonly event: ServiceKeyEvent; readonly at: ServiceIdentity['at'] } | undefined;
  for await (const recorded of wholeStream(eventStore, streams.service)) {
    const event = serviceEvent(readEvent(recorded));
    const key = bringsSigningKey(event) ? event : newest?.event;
    if (key !== undefined) newest = { event: key, at: recorded };
  }
  return newest;
}

/** The 32-byte seed of the key that the event brought. @throws WrongMasterKeyError */
export function openSigningSeed(keyring: Keyring, { data }: ServiceKeyEvent): Uint8Array {
  return openOrRefuse(keyring, data.signing_private, signingPlace(data.installation_id));
}

function openOrRefuse(keyring: Keyring, sealed: SealedSecret, at: Place): Uint8Array {
  const opened = keyring.open(sealed, at);
  if (opened.kind === 'opened') return opened.plaintext;
  throw new WrongMasterKeyError('the service identity in the event log was altered and cannot be opened');
}

/** Appends a new identity. The caller reads it back, whether this append, another or none was written. */
async function appendIdentity({ eventStore, keyring, clock, ids }: ServiceIdentityOptions): Promise<void> {
  const { installationId } = keyring;
  const identity = generateX25519();
  const seed = generateTokenSeed();
  const event: ServiceEvent = {
    type: 'ServiceIdentityCreated',
    data: {
      installation_id: installationId,
      static_public: base64url(identity.publicKey),
      static_private: keyring.seal(identity.privateKey, place(installationId, 'static_private')),
      signing_public: base64url(rawPublicKey(seed)),
      signing_private: keyring.seal(seed, signingPlace(installationId)),
    },
  };
  const proposal = propose([event], systemContext('first start'), clock, ids);
  await eventStore.append(streams.service, 'no_stream', proposal.events);
}

/** The public half of a seed: 32 bytes. */
export function rawPublicKey(seed: Uint8Array): Uint8Array {
  const { x } = tokenKeysFrom(seed).publicKey.export({ format: 'jwk' });
  return Buffer.from(x ?? '', 'base64url');
}
