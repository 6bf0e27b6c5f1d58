/**
 * X25519 keys: conversion between their 32 raw bytes and Node's key objects. The key agreement is in `src/noise/`.
 * In kernel because both `src/security/` (identities, verifiers) and `src/noise/` need it. Keys are imported as JWK, which
 * is four times faster than DER for a public key and twenty times for a private one.
 */
import { createPrivateKey, createPublicKey, generateKeyPairSync } from 'node:crypto';
import type { KeyObject } from 'node:crypto';

export const x25519KeyBytes = 32;

const publicAsJwk = { publicKeyEncoding: { format: 'jwk' } };

/** PKCS #8 wrapping of a raw X25519 private key (RFC 8410); the 32 bytes follow. */
const pkcs8Prefix = Buffer.from('302e020100300506032b656e04220420', 'hex');

export interface X25519PublicKey {
  readonly key: KeyObject;
  /** The 32 raw bytes. */
  readonly bytes: Uint8Array;
}

export interface X25519KeyPair {
  readonly privateKey: KeyObject;
  readonly publicKey: X25519PublicKey;
}

/**
 * A public key from its 32 raw bytes. Any 32 bytes are accepted; a key of small order is found at the key agreement.
 * @throws RangeError on another length
 */
export function importX25519Public(bytes: Uint8Array): X25519PublicKey {
  requireKeyLength(bytes, 'X25519 public key');
  return new RawPublicKey(Uint8Array.from(bytes));
}

/** Makes its key object when somebody asks: of the ephemeral key that each handshake makes, only the bytes are needed. */
class RawPublicKey implements X25519PublicKey {
  readonly bytes: Uint8Array;
  #key: KeyObject | undefined;

  constructor(bytes: Uint8Array) {
    this.bytes = bytes;
  }
  get key(): KeyObject {
    return (this.#key ??= publicFromJwk(this.bytes));
  }
}

/**
 * A key pair from the 32 raw bytes of its private half.
 * @throws RangeError on another length; the message never holds the bytes
 */
export function importX25519Private(bytes: Uint8Array): X25519KeyPair {
  requireKeyLength(bytes, 'X25519 private key');
  jwkWorks ??= importsJwk();
  const privateKey = jwkWorks ? fromJwk(bytes) : fromPkcs8(bytes);
  return { privateKey, publicKey: publicHalf(createPublicKey(privateKey)) };
}

function publicFromJwk(bytes: Uint8Array): KeyObject {
  const x = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64url');
  return createPublicKey({ key: { kty: 'OKP', crv: 'X25519', x }, format: 'jwk' });
}

let jwkWorks: boolean | undefined;

/** The public half, which a JWK names as well, is not known yet; no release of Node so far reads it for a private key. */
function fromJwk(bytes: Uint8Array): KeyObject {
  const d = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64url');
  return createPrivateKey({ key: { kty: 'OKP', crv: 'X25519', d, x: '' }, format: 'jwk' });
}

function fromPkcs8(bytes: Uint8Array): KeyObject {
  const der = Buffer.concat([pkcs8Prefix, bytes]);
  const key = createPrivateKey({ key: der, format: 'der', type: 'pkcs8' });
  der.fill(0);
  return key;
}

/** Tries both on one key, so that a release of Node that wants the public half in a JWK gets DER. */
function importsJwk(): boolean {
  const bytes = new Uint8Array(x25519KeyBytes).fill(1);
  const publicOf = (key: KeyObject): Buffer => Buffer.from(publicHalf(createPublicKey(key)).bytes);
  try {
    return publicOf(fromJwk(bytes)).equals(publicOf(fromPkcs8(bytes)));
  } catch {
    return false;
  }
}

/**
 * A new random key pair. The public half is encoded during generation and never exported afterwards, because Node 20
 * can deadlock: it holds the key's mutex while it builds a JWK, and a garbage collection at that moment that frees the
 * generating job waits for the same mutex.
 */
export function generateX25519(): X25519KeyPair {
  // The type declarations lack this overload, with only one half encoded.
  const { privateKey, publicKey }: { readonly privateKey: KeyObject; readonly publicKey: unknown } =
    generateKeyPairSync('x25519', publicAsJwk);
  return { privateKey, publicKey: importX25519Public(publicBytes(publicKey)) };
}

/** The 32 raw bytes of a private key, for sealing. The caller wipes them. */
export function exportX25519Private(pair: X25519KeyPair): Uint8Array {
  const der = pair.privateKey.export({ format: 'der', type: 'pkcs8' });
  const raw = Uint8Array.from(der.subarray(der.length - x25519KeyBytes));
  der.fill(0);
  return raw;
}

/** Only for imported pairs: see `generateX25519`. */
function publicHalf(key: KeyObject): X25519PublicKey {
  return { key, bytes: publicBytes(key.export({ format: 'jwk' })) };
}

/** The raw bytes of a public JWK. */
function publicBytes(jwk: unknown): Uint8Array {
  const x = typeof jwk === 'object' && jwk !== null && 'x' in jwk ? jwk.x : undefined;
  if (typeof x !== 'string') throw new TypeError('an X25519 key has no public bytes');
  return Uint8Array.from(Buffer.from(x, 'base64url'));
}

function requireKeyLength(bytes: Uint8Array, label: string): void {
  if (bytes.length !== x25519KeyBytes) throw new RangeError(`${label}: expected 32 bytes, got ${bytes.length}`);
}
