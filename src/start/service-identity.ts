/**
 * The service's own keys: an X25519 pair that agents pin and an Ed25519 key that signs tokens. Created at the first start
 * and shared by all instances through the stream `svc-service`; the append expects no stream, so of two first starts one
 * wins. Implements `docs/contract/agent-protocol.md#psk-verifier-service-identity`.
 */
import { randomUUID } from 'node:crypto';
import type { ServiceEvent } from '../domain/service/identity.js';
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
import { propose } from '../commands/proposal.js';
import { systemContext } from '../commands/system.js';
import { tuning } from '../commands/tuning.js';

export interface ServiceIdentity {
  readonly installationId: string;
  /** 32 bytes. */
  readonly staticPublic: Uint8Array;
  readonly staticPrivate: Uint8Array;
  /** 32-byte Ed25519 seed. */
  readonly signingSeed: Uint8Array;
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
const base64url = (bytes: Uint8Array): string => Buffer.from(bytes).toString('base64url');

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
  for await (const recorded of eventStore.read(streams.service, { direction: 'forward', from: 'start', maxCount: 1 })) {
    const { data } = readEvent(recorded) as unknown as ServiceEvent;
    const [staticPrivate, signingSeed] = await Promise.all([
      openOrRefuse(keyring, data.static_private, place(data.installation_id, 'static_private')),
      openOrRefuse(keyring, data.signing_private, place(data.installation_id, 'signing_private')),
    ]);
    return {
      installationId: data.installation_id,
      staticPublic: Buffer.from(data.static_public, 'base64url'),
      staticPrivate,
      signingSeed,
    };
  }
  return undefined;
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
      signing_private: await keyring.seal(seed, place(installationId, 'signing_private')),
    },
  };
  const proposal = propose([event], systemContext('first start'), clock, ids);
  const outcome = await eventStore.append(streams.service, 'no_stream', proposal.events);
  if (outcome.kind !== 'conflict' && outcome.kind !== 'unavailable') return;
  // Not written for certain: its data keys are deleted, as far as that succeeds.
  const { static_private, signing_private } = event.data;
  await Promise.allSettled([static_private, signing_private].map(({ key_id }) => keyring.shred(key_id)));
}

function rawPublicKey(seed: Uint8Array): Uint8Array {
  const { x } = tokenKeysFrom(seed).publicKey.export({ format: 'jwk' });
  return Buffer.from(x ?? '', 'base64url');
}
