/**
 * Control PSKs on the service's side: issues them and keeps only their verifiers. The text form, the derived keys and
 * the handshake are in `src/channel/noise/`. Implements
 * `docs/contract/agent-protocol.md#psk-verifier-service-identity`.
 */
import { randomBytes } from 'node:crypto';
import { deriveNodeSecrets, encodeControlPsk, pskFingerprint } from '../channel/noise/control-psk.js';
import { encodeJoinToken } from '../channel/noise/join-token.js';
import { generateX25519, x25519PairOf } from '../kernel/crypto/crypto.js';
import { streams } from '../kernel/event.js';
import type { Keyring, Place } from './keyring.js';
import type { OpenRefusal, SealedValue } from './sealing.js';

/** Lets the service recognise a node. Its holder can impersonate neither the node nor the service. */
export interface PskVerifier {
  /** 32 bytes. */
  readonly nodeStaticPublic: Uint8Array;
  /** 32 bytes, secret; stored sealed. */
  readonly psk: Uint8Array;
}

export interface IssuedPsk {
  /** Shown once to the caller and stored nowhere. */
  readonly controlPsk: string;
  readonly verifier: PskVerifier;
  /** Not secret: `SHA256:` and the hash of the node's public key in base64url. */
  readonly fingerprint: string;
}

export type OpenedVerifier =
  | { readonly kind: 'opened'; readonly verifier: PskVerifier }
  | { readonly kind: 'refused'; readonly reason: OpenRefusal };

const halfBytes = 32;
/** The place that the verifier of a node or a join token is sealed for. */
const placeOf = (resourceId: string): Place => ({ stream: streams.fleet, resourceId, field: 'psk_verifier' });

/**
 * Issues a control PSK.
 * @param servicePublic the service's X25519 public key, 32 bytes
 * @param secret 32 random bytes; only tests pass them
 * @throws RangeError when either is not 32 bytes
 */
export function issueControlPsk(servicePublic: Uint8Array, secret: Uint8Array = randomBytes(halfBytes)): IssuedPsk {
  const controlPsk = encodeControlPsk({ secret, servicePublic });
  const { nodeStaticPrivate, psk } = deriveNodeSecrets(secret);
  const nodeStaticPublic = x25519PairOf(nodeStaticPrivate).publicKey;
  nodeStaticPrivate.fill(0);
  return { controlPsk, verifier: { nodeStaticPublic, psk }, fingerprint: pskFingerprint(nodeStaticPublic) };
}

/** Issues the text of a join token. @param id its UUID @param servicePublic as above */
export function issueJoinToken(
  id: string,
  servicePublic: Uint8Array,
): Pick<IssuedPsk, 'verifier'> & { readonly token: string } {
  const secret = randomBytes(halfBytes);
  const token = encodeJoinToken({ id, secret, servicePublic });
  const { verifier } = issueControlPsk(servicePublic, secret);
  secret.fill(0);
  return { token, verifier };
}

/** Seals a verifier for the event that carries it. @param resourceId of the node or join token */
export function sealVerifier(keyring: Keyring, verifier: PskVerifier, resourceId: string): SealedValue {
  return keyring.seal(Buffer.concat([verifier.nodeStaticPublic, verifier.psk]), placeOf(resourceId));
}

/** Opens a verifier that `sealVerifier` sealed for the same resource. */
export function openVerifier(keyring: Keyring, sealed: SealedValue, resourceId: string): OpenedVerifier {
  const opened = keyring.open(sealed, placeOf(resourceId));
  if (opened.kind !== 'opened') return opened;
  const { plaintext } = opened;
  if (plaintext.length !== 2 * halfBytes) return { kind: 'refused', reason: 'malformed' };
  const verifier = {
    nodeStaticPublic: Uint8Array.from(plaintext.subarray(0, halfBytes)),
    psk: Uint8Array.from(plaintext.subarray(halfBytes)),
  };
  plaintext.fill(0);
  return { kind: 'opened', verifier };
}

/**
 * A verifier that no PSK matches, created once per process. Handshakes for unknown nodes use it, so that they cost the
 * same work and get the same answer.
 */
export function createDummyVerifier(): PskVerifier {
  return { nodeStaticPublic: generateX25519().publicKey, psk: randomBytes(halfBytes) };
}
