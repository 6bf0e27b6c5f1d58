/**
 * The SymmetricState of Noise (revision 34, section 5.2) for SHA-256 and ChaCha20-Poly1305: chaining key, handshake
 * hash, and the key that encrypts the handshake's payloads. Knows nothing of patterns or Diffie-Hellman.
 * Hashes with node:crypto, because SHA-256 in JavaScript takes several times as long.
 */
import { createHash } from 'node:crypto';
import { decryptAead, encryptAead } from './aead.js';
import { createCipherState } from './cipher-state.js';
import type { CipherState } from './cipher-state.js';
import { deriveKeys, hashBytes } from './hkdf.js';

const none = new Uint8Array(0);

export interface SymmetricState {
  mixHash(data: Uint8Array): void;
  mixKey(material: Uint8Array): void;
  mixKeyAndHash(material: Uint8Array): void;
  encryptAndHash(plaintext: Uint8Array): Uint8Array;
  /** Undefined when the tag does not verify; the state must not be used afterwards. */
  decryptAndHash(ciphertext: Uint8Array): Uint8Array | undefined;
  /** Bytes that encryption adds now: a tag, or nothing before the first key. */
  readonly overhead: number;
  /** The current handshake hash `h`. */
  handshakeHash(): Uint8Array;
  /** Ends the handshake. @returns the cipher states from initiator to responder and back */
  split(): readonly [CipherState, CipherState];
  wipe(): void;
}

/** InitializeSymmetric(protocol_name). */
export function createSymmetricState(protocolName: string): SymmetricState {
  const name = Buffer.from(protocolName, 'ascii');
  let hash: Uint8Array = name.length <= hashBytes ? Buffer.concat([name], hashBytes) : sha256(name);
  let chainingKey: Uint8Array = Uint8Array.from(hash);
  let key: Uint8Array | undefined;
  let counter = 0;

  const advance = (nextChainingKey: Uint8Array, nextKey: Uint8Array): void => {
    chainingKey.fill(0);
    key?.fill(0);
    chainingKey = nextChainingKey;
    key = nextKey;
    counter = 0;
  };
  const mixHash = (data: Uint8Array): void => {
    hash = sha256(hash, data);
  };

  const wipe = (): void => {
    chainingKey.fill(0);
    key?.fill(0);
  };

  return {
    mixHash,
    mixKey(material) {
      const [nextChainingKey = none, nextKey = none] = deriveKeys(chainingKey, material, 2);
      advance(nextChainingKey, nextKey);
    },
    mixKeyAndHash(material) {
      const [nextChainingKey = none, hashed = none, nextKey = none] = deriveKeys(chainingKey, material, 3);
      mixHash(hashed);
      advance(nextChainingKey, nextKey);
    },
    encryptAndHash(plaintext) {
      const ciphertext = key === undefined ? Uint8Array.from(plaintext) : encryptAead(key, counter, plaintext, hash);
      if (key !== undefined) counter += 1;
      mixHash(ciphertext);
      return ciphertext;
    },
    decryptAndHash(ciphertext) {
      const plaintext = key === undefined ? Uint8Array.from(ciphertext) : decryptAead(key, counter, ciphertext, hash);
      if (plaintext === undefined) return undefined;
      if (key !== undefined) counter += 1;
      mixHash(ciphertext);
      return plaintext;
    },
    get overhead() {
      return key === undefined ? 0 : 16;
    },
    handshakeHash: () => Uint8Array.from(hash),
    split() {
      const [fromInitiator = none, fromResponder = none] = deriveKeys(chainingKey, none, 2);
      wipe();
      return [createCipherState(kept(fromInitiator)), createCipherState(kept(fromResponder))];
    },
    wipe,
  };
}

/** Moves a key that lives as long as its session: a small array of its own takes less memory than a hash's buffer. */
function kept(key: Uint8Array): Uint8Array {
  const copy = Uint8Array.from(key);
  key.fill(0);
  return copy;
}

function sha256(...parts: readonly Uint8Array[]): Uint8Array {
  const hash = createHash('sha256');
  for (const part of parts) hash.update(part);
  return hash.digest();
}
