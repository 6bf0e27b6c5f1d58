/**
 * The service's own keys: an X25519 pair that agents pin and an Ed25519 key that signs tokens. Created at the first
 * start and shared by all instances through the stream `svc-service`; the append expects no stream, so one of two first
 * starts wins. `signing-key.ts` replaces the key that signs tokens. Implements
 * `docs/contract/agent-protocol.md#psk-verifier-service-identity`.
 */
import type { SealedSecret } from '../../domain/secret/sealed.js';
import type { ServiceEvent, ServiceKeyEvent } from '../../domain/service/identity.js';
import type { ServiceState } from '../../domain/service/state.js';
import { generateX25519 } from '../../kernel/crypto/crypto.js';
import { streams } from '../../kernel/event.js';
import type { Keyring, Place } from '../../security/keyring.js';
import { generateTokenSeed, tokenKeysFrom } from '../../security/tokens.js';
import { WrongMasterKeyError } from './keyring.js';
import { writeService, type ServiceStreamOptions } from './service-stream.js';

export interface ServiceIdentity {
  readonly installationId: string;
  /** 32 bytes. */
  readonly staticPublic: Uint8Array;
  readonly staticPrivate: Uint8Array;
  /** 32-byte Ed25519 seed of the newest key that signs tokens. */
  readonly signingSeed: Uint8Array;
  /** `svc-service` as read. */
  readonly at: ServiceState;
}

export interface ServiceIdentityOptions extends ServiceStreamOptions {
  readonly keyring: Keyring;
}

const place = (installationId: string, field: string): Place => ({
  stream: streams.service,
  resourceId: installationId,
  field,
});
/** The place that a token-signing key is sealed for. */
export const signingPlace = (installationId: string): Place => place(installationId, 'signing_private');

/**
 * The identity of this installation, created if it does not exist.
 * @throws WrongMasterKeyError, BrokenChainError, ServiceError `unavailable`
 */
export async function ensureServiceIdentity(options: ServiceIdentityOptions): Promise<ServiceIdentity> {
  const { keyring } = options;
  const at = await writeService(options, 'first start', ({ identity }) =>
    identity === undefined ? newIdentity(keyring) : undefined,
  );
  const { identity, signingKey } = at;
  if (identity === undefined || signingKey === undefined) throw new Error('the identity that was written is not there');
  return {
    installationId: identity.installation_id,
    staticPublic: Buffer.from(identity.static_public, 'base64url'),
    staticPrivate: openOrRefuse(keyring, identity.static_private, place(identity.installation_id, 'static_private')),
    signingSeed: openSigningSeed(keyring, signingKey),
    at,
  };
}

/** The 32-byte seed of the key in an event. @throws WrongMasterKeyError */
export function openSigningSeed(keyring: Keyring, data: ServiceKeyEvent['data']): Uint8Array {
  return openOrRefuse(keyring, data.signing_private, signingPlace(data.installation_id));
}

function openOrRefuse(keyring: Keyring, sealed: SealedSecret, at: Place): Uint8Array {
  const opened = keyring.open(sealed, at);
  if (opened.kind === 'opened') return opened.plaintext;
  throw new WrongMasterKeyError('the service identity in the event log was altered and cannot be opened');
}

function newIdentity(keyring: Keyring): ServiceEvent {
  const { installationId } = keyring;
  const identity = generateX25519();
  const seed = generateTokenSeed();
  return {
    type: 'ServiceIdentityCreated',
    data: {
      installation_id: installationId,
      static_public: Buffer.from(identity.publicKey).toString('base64url'),
      static_private: keyring.seal(identity.privateKey, place(installationId, 'static_private')),
      signing_public: publicKeyText(seed),
      signing_private: keyring.seal(seed, signingPlace(installationId)),
    },
  };
}

/** The public half of a seed: 32 bytes in base64url. */
export const publicKeyText = (seed: Uint8Array): string =>
  tokenKeysFrom(seed).publicKey.export({ format: 'jwk' }).x ?? '';
