/**
 * The keys that an installation keeps for life: the X25519 identity that agents pin, and the Ed25519 key that signs
 * tokens. Generates them and turns raw bytes back into keys; `src/start/service-identity.ts` seals and stores them.
 * Implements `docs/contract/agent-protocol.md#psk-verifier-service-identity`.
 */
import { createPrivateKey, createPublicKey, randomBytes } from 'node:crypto';
import type { KeyObject } from 'node:crypto';
import { exportX25519Private, generateX25519 } from '../kernel/x25519.js';

/** PKCS #8 header of an Ed25519 private key (RFC 8410); the 32 bytes of the seed follow. */
const pkcs8Prefix = Buffer.from('302e020100300506032b657004220420', 'hex');

export interface NewServiceIdentity {
  /** 32 bytes, secret. */
  readonly privateKey: Uint8Array;
  /** 32 bytes, not secret: part of every control PSK. */
  readonly publicKey: Uint8Array;
}

/** A new X25519 identity as raw bytes; `importX25519Private` (`src/kernel/x25519.ts`) returns its key pair. */
export function generateServiceIdentity(): NewServiceIdentity {
  const pair = generateX25519();
  return { privateKey: exportX25519Private(pair), publicKey: pair.publicKey.bytes };
}

/** A new Ed25519 seed: 32 bytes, secret. */
export function generateTokenSeed(): Uint8Array {
  return randomBytes(32);
}

export interface TokenKeys {
  readonly privateKey: KeyObject;
  readonly publicKey: KeyObject;
}

/**
 * The Ed25519 pair of a seed.
 * @throws RangeError when the seed is not 32 bytes.
 */
export function tokenKeysFrom(seed: Uint8Array): TokenKeys {
  if (seed.length !== 32) throw new RangeError(`token signing seed: expected 32 bytes, got ${seed.length}`);
  const der = Buffer.concat([pkcs8Prefix, seed]);
  const privateKey = createPrivateKey({ key: der, format: 'der', type: 'pkcs8' });
  der.fill(0);
  return { privateKey, publicKey: createPublicKey(privateKey) };
}
