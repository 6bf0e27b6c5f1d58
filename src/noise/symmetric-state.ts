/**
 * The SymmetricState of Noise (revision 34, section 5.2) for SHA-256 and ChaCha20-Poly1305: chaining key, handshake
 * hash, and the key that encrypts the handshake's payloads. Knows nothing of patterns or Diffie-Hellman.
 * Hashes with node:crypto, because HKDF in JavaScript takes five times as long and made up half of a handshake.
 */
import { createHash, hkdfSync } from 'node:crypto';
import { decryptAead, encryptAead } from './aead.js';
import { createCipherState } from './cipher-state.js';
import type { CipherState } from './cipher-state.js';

const hashBytes = 32;
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
  let chainingKey = Uint8Array.from(hash);
  let key: Uint8Array | undefined;
  let counter = 0;

  // Noise's HKDF is RFC 5869 with the chaining key as salt and no info (section 4.3).
  const derive = (material: Uint8Array, outputs: number): Uint8Array =>
    new Uint8Array(hkdfSync('sha256', material, chainingKey, none, outputs * hashBytes));
  const output = (bytes: Uint8Array, index: number): Uint8Array =>
    Uint8Array.from(bytes.subarray(index * hashBytes, (index + 1) * hashBytes));
  const advance = (derived: Uint8Array, keyIndex: number): void => {
    chainingKey.fill(0);
    key?.fill(0);
    chainingKey = Uint8Array.from(output(derived, 0));
    key = output(derived, keyIndex);
    counter = 0;
    derived.fill(0);
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
      advance(derive(material, 2), 1);
    },
    mixKeyAndHash(material) {
      const derived = derive(material, 3);
      mixHash(output(derived, 1));
      advance(derived, 2);
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
      const derived = derive(none, 2);
      const states = [createCipherState(output(derived, 0)), createCipherState(output(derived, 1))] as const;
      derived.fill(0);
      wipe();
      return states;
    },
    wipe,
  };
}

function sha256(...parts: readonly Uint8Array[]): Uint8Array {
  const hash = createHash('sha256');
  for (const part of parts) hash.update(part);
  return hash.digest();
}
