/**
 * The service's own keys: an X25519 pair that agents pin and an Ed25519 key that signs tokens. Created at the first start
 * and shared by all instances through the stream `svc-service`; the append expects no stream, so of two first starts one
 * wins. `signing-key.ts` replaces the key that signs tokens. Implements `docs/contract/agent-protocol.md#psk-verifier-service-identity`.
 */
import { randomUUID } from 'node:crypto';
import type { ServiceEvent } from '../domain/service/identity.js';
import { serviceEvent } from '../domain/service/identity.js';
import { readEvent } from '../domain/log/upcast.js';
import { sleep } from '../kernel/background.js';
import type { Clock } from '../kernel/clock.js';
import { ServiceError } from '../kernel/errors.js';
import { streams } from '../kernel/event.js';
import type { Ids } from '../kernel/ids.js';
import { backoff } from '../kernel/retry.js';
import type { RetryPolicy } from '../kernel/retry.js';
import type { Keyring } from '../security/keyring.js';
import type { SealContext, SealedValue } from '../security/sealing.js';
import { generateServiceIdentity, generateTokenSeed, tokenKeysFrom } from '../security/service-identity.js';
import type { EventStore } from '../storage/event-store.js';
import { firstFrom, newestEvent } from '../storage/event-store.js';
import { propose } from '../commands/proposal.js';
import { systemContext } from '../commands/system.js';
import { tuning } from '../commands/tuning.js';

export interface ServiceIdentity {
  readonly installationId: string;
  /** 32 bytes. */
  readonly staticPublic: Uint8Array;
  readonly staticPrivate: Uint8Array;
  /** 32-byte Ed25519 seed of the newest key that signs tokens. */
  readonly signingSeed: Uint8Array;
  /** Its public key, base64url. */
  readonly signingPublic: string;
}

export interface ServiceIdentityOptions {
  readonly eventStore: EventStore;
  readonly keyring: Keyring;
  readonly clock: Clock;
  readonly ids: Ids;
}

/** Instances that start at the same time may all try to write the first identity. */
const conflictRetry: RetryPolicy = { firstMs: 50, maxMs: 2_000 };

/** The master key does not open the stored identity; the message says why. */
export class WrongMasterKeyError extends Error {}

const place = (installationId: string, field: string): SealContext => ({
  stream: streams.service,
  resourceId: installationId,
  field,
});
/** The context that a key for tokens is sealed in. */
export const signingPlace = (installationId: string): SealContext => place(installationId, 'signing_private');
export const base64url = (bytes: Uint8Array): string => Buffer.from(bytes).toString('base64url');

/** The identity of this installation, created if there is none. @throws WrongMasterKeyError, ServiceError `unavailable` */
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
  const newest = await newestServiceEvent(eventStore);
  if (recorded === undefined || newest === undefined) return undefined;
  const { type, data } = serviceEvent(readEvent(recorded));
  if (type !== 'ServiceIdentityCreated') throw new Error(`${streams.service} begins with ${type}`);
  const [staticPrivate, signingSeed] = await Promise.all([
    openOrRefuse(keyring, data.static_private, place(data.installation_id, 'static_private')),
    openSigningSeed(keyring, newest.event),
  ]);
  return {
    installationId: data.installation_id,
    staticPublic: Buffer.from(data.static_public, 'base64url'),
    staticPrivate,
    signingSeed,
    signingPublic: newest.event.data.signing_public,
  };
}

/** The last event of `svc-service`, which holds the key that signs tokens now. Undefined before the first start. */
export async function newestServiceEvent(
  eventStore: EventStore,
): Promise<{ readonly event: ServiceEvent; readonly revision: number } | undefined> {
  const recorded = await newestEvent(eventStore, streams.service);
  if (recorded === undefined) return undefined;
  return { event: serviceEvent(readEvent(recorded)), revision: recorded.revision };
}

/** The 32-byte seed of the key that the event brought. @throws WrongMasterKeyError */
export function openSigningSeed(keyring: Keyring, { data }: ServiceEvent): Promise<Uint8Array> {
  return openOrRefuse(keyring, data.signing_private, signingPlace(data.installation_id));
}

async function openOrRefuse(keyring: Keyring, sealed: object, context: SealContext): Promise<Uint8Array> {
  const opened = await keyring.open(sealed as SealedValue, context);
  if (opened.kind === 'opened') return opened.plaintext;
  if (opened.kind === 'refused' && opened.reason === 'wrong_master_key') {
    throw new WrongMasterKeyError('the master key is not the one that this installation was sealed with');
  }
  throw new WrongMasterKeyError(
    opened.kind === 'shredded'
      ? 'the data key of the service identity is missing from the read store; restore the read store that belongs to this event log'
      : 'the service identity in the event log was altered and cannot be opened',
  );
}

/** Appends a new identity. The caller reads it back, whether this append, another or none was written. */
async function appendIdentity({ eventStore, keyring, clock, ids }: ServiceIdentityOptions): Promise<void> {
  const installationId = randomUUID();
  const identity = generateServiceIdentity();
  const seed = generateTokenSeed();
  const event: ServiceEvent = {
    type: 'ServiceIdentityCreated',
    data: {
      installation_id: installationId,
      static_public: base64url(identity.publicKey),
      static_private: await keyring.seal(identity.privateKey, place(installationId, 'static_private')),
      signing_public: base64url(rawPublicKey(seed)),
      signing_private: await keyring.seal(seed, signingPlace(installationId)),
    },
  };
  const proposal = propose([event], systemContext('first start'), clock, ids);
  const outcome = await eventStore.append(streams.service, 'no_stream', proposal.events);
  if (outcome.kind !== 'conflict' && outcome.kind !== 'unavailable') return;
  // Not written for certain: its data keys are deleted, as far as that succeeds.
  const { static_private, signing_private } = event.data;
  await Promise.allSettled([static_private, signing_private].map(({ key_id }) => keyring.shred(key_id)));
}

/** The public half of a seed: 32 bytes. */
export function rawPublicKey(seed: Uint8Array): Uint8Array {
  const { x } = tokenKeysFrom(seed).publicKey.export({ format: 'jwk' });
  return Buffer.from(x ?? '', 'base64url');
}
