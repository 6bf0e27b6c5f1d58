/**
 * The cryptography of agent sessions and sealed secrets. It uses libsodium, or node:crypto where the libsodium addon
 * does not load; the choice is made once, when the process starts. Ed25519, X.509, TLS and AES always use node:crypto,
 * in the files that need them.
 */
import { randomBytes } from 'node:crypto';
import type { Logger } from '../logger.js';
import { nodeCrypto } from './node.js';
import { tagBytes, type Aead, type Primitives } from './primitives.js';
import { loadSodium } from './sodium.js';

interface Choice {
  readonly primitives: Primitives;
  /** Why libsodium is not used; undefined if it is. */
  readonly why: string | undefined;
}

const { primitives, why }: Choice = choose();

function choose(): Choice {
  try {
    return { primitives: loadSodium(), why: undefined };
  } catch (error) {
    return { primitives: nodeCrypto, why: error instanceof Error ? error.message : String(error) };
  }
}

/**
 * The library in use; `why` says why it is not libsodium, and is undefined if it is.
 * @internal exported for tests
 */
export const cryptoLibrary: { readonly name: string; readonly why: string | undefined } = {
  name: primitives.name,
  why,
};

/** Logs which library is in use. */
export function logCryptoLibrary(logger: Logger): void {
  const { name, why: cause } = cryptoLibrary;
  if (cause === undefined) logger.info({ library: name }, 'cryptography is done by libsodium');
  else logger.info({ library: name, cause }, 'cryptography is done by node:crypto: libsodium does not load here');
}

export const x25519KeyBytes = 32;

/** Both halves as raw bytes; the private half is secret. */
export interface X25519KeyPair {
  readonly privateKey: Uint8Array;
  readonly publicKey: Uint8Array;
}

/** A new random key pair. */
export function generateX25519(): X25519KeyPair {
  return pairOf(randomBytes(x25519KeyBytes));
}

/**
 * The key pair of a private key, which is copied.
 * @throws RangeError unless the key has 32 bytes; the message never contains them
 */
export function x25519PairOf(privateKey: Uint8Array): X25519KeyPair {
  requireLength('X25519 private key', privateKey, x25519KeyBytes);
  return pairOf(Uint8Array.from(privateKey));
}

function pairOf(privateKey: Uint8Array): X25519KeyPair {
  return { privateKey, publicKey: primitives.x25519Public(privateKey) };
}

/**
 * The secret that two X25519 keys agree on, for the caller to wipe; undefined for a public key of small order.
 * @throws RangeError unless both keys have 32 bytes
 */
export function agreeX25519(privateKey: Uint8Array, publicKey: Uint8Array): Uint8Array | undefined {
  requireLength('X25519 private key', privateKey, x25519KeyBytes);
  requireLength('X25519 public key', publicKey, x25519KeyBytes);
  const shared = primitives.x25519Agree(privateKey, publicKey);
  return shared?.some((byte) => byte !== 0) === true ? shared : undefined;
}

export const aeadKeyBytes = 32;
/** XChaCha20-Poly1305 nonces are long enough to be random, so many writers can share one key. */
export const xchachaNonceBytes = 24;

/** ChaCha20-Poly1305 (RFC 8439), with 12-byte nonces, which must never repeat under a key. */
export const chacha: Aead = checked(primitives.chacha, 12);

/** XChaCha20-Poly1305 (draft-irtf-cfrg-xchacha-03), with 24-byte nonces. */
export const xchacha: Aead = checked(primitives.xchacha, xchachaNonceBytes);

/** Throws a RangeError for a key or nonce of the wrong length, and fails to open anything too short to have a tag. */
function checked(aead: Aead, nonceBytes: number): Aead {
  const check = (key: Uint8Array, nonce: Uint8Array): void => {
    requireLength('key', key, aeadKeyBytes);
    requireLength('nonce', nonce, nonceBytes);
  };
  return {
    seal(key, nonce, plaintext, associated) {
      check(key, nonce);
      return aead.seal(key, nonce, plaintext, associated);
    },
    open(key, nonce, sealed, associated) {
      check(key, nonce);
      return sealed.length < tagBytes ? undefined : aead.open(key, nonce, sealed, associated);
    },
  };
}

export const sha256Bytes = 32;

/** SHA-256 of the concatenated parts. */
export const sha256: Primitives['sha256'] = (...parts) => primitives.sha256(...parts);

const blockBytes = 64;

/**
 * HMAC-SHA256 (RFC 2104) of the concatenated parts.
 * @internal exported for tests
 */
export function hmacSha256(key: Uint8Array, ...parts: readonly Uint8Array[]): Uint8Array {
  const short = key.length > blockBytes ? sha256(key) : key;
  const pad = Buffer.allocUnsafe(blockBytes);
  const padWith = (byte: number): Buffer => {
    for (let index = 0; index < blockBytes; index += 1) pad[index] = (short[index] ?? 0) ^ byte;
    return pad;
  };
  const inner = sha256(padWith(0x36), ...parts);
  const mac = sha256(padWith(0x5c), inner);
  pad.fill(0);
  inner.fill(0);
  return mac;
}

/**
 * HKDF-SHA256 (RFC 5869).
 * @param length of the result in bytes, at most 8160
 * @returns key material in its own memory, for the caller to wipe
 */
export function hkdfSha256(salt: Uint8Array, material: Uint8Array, info: Uint8Array, length: number): Uint8Array {
  const extracted = hmacSha256(salt, material);
  const out = Buffer.allocUnsafe(length);
  let block: Uint8Array = new Uint8Array(0);
  for (let counter = 1, at = 0; at < length; counter += 1, at += sha256Bytes) {
    const next = hmacSha256(extracted, block, info, Uint8Array.of(counter));
    block.fill(0);
    block = next;
    out.set(block.subarray(0, length - at), at);
  }
  block.fill(0);
  extracted.fill(0);
  return out;
}

function requireLength(label: string, bytes: Uint8Array, expected: number): void {
  if (bytes.length !== expected) throw new RangeError(`${label}: expected ${expected} bytes, got ${bytes.length}`);
}
