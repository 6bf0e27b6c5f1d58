/**
 * The SymmetricState of Noise (revision 34, section 5.2) for SHA-256 and ChaCha20-Poly1305: chaining key, handshake
 * hash, and the key that encrypts the handshake's payloads. Knows nothing of patterns or Diffie-Hellman.
 * Hashes with node:crypto, because SHA-256 in JavaScript takes several times as long.
 */
import { hash as hashOnce } from 'node:crypto';
import { decryptAead, encryptAead } from './aead.js';
import { createCipherState } from './cipher-state.js';
import type { CipherState } from './cipher-state.js';
import { deriveKeys, hashBytes } from './hkdf.js';
import type { DerivedKeys } from './hkdf.js';

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
  let hash: Uint8Array =
    name.length <= hashBytes ? Buffer.concat([name], hashBytes) : hashOnce('sha256', name, 'buffer');
  let chainingKey: Uint8Array = Uint8Array.from(hash);
  /** What the key comes from; it is made when it is needed, for only two of six encrypt anything. */
  let derived: DerivedKeys | undefined;
  let key: Uint8Array | undefined;
  let counter = 0;

  const overwrite = (): void => {
    chainingKey.fill(0);
    derived?.wipe();
    key?.fill(0);
  };
  const wipe = (): void => {
    overwrite();
    key = new Uint8Array(hashBytes);
  };
  const advance = (nextChainingKey: Uint8Array, keys: DerivedKeys): void => {
    overwrite();
    chainingKey = nextChainingKey;
    derived = keys;
    key = undefined;
    counter = 0;
  };
  const currentKey = (): Uint8Array | undefined => (key ??= derived?.last());
  const mixHash = (data: Uint8Array): void => {
    hash = sha256(hash, data);
  };

  return {
    mixHash,
    mixKey(material) {
      const keys = deriveKeys(chainingKey, material, 2);
      const [nextChainingKey = none] = keys.first;
      advance(nextChainingKey, keys);
    },
    mixKeyAndHash(material) {
      const keys = deriveKeys(chainingKey, material, 3);
      const [nextChainingKey = none, hashed = none] = keys.first;
      mixHash(hashed);
      advance(nextChainingKey, keys);
    },
    encryptAndHash(plaintext) {
      const using = currentKey();
      const ciphertext =
        using === undefined ? Uint8Array.from(plaintext) : encryptAead(using, counter, plaintext, hash);
      if (using !== undefined) counter += 1;
      mixHash(ciphertext);
      return ciphertext;
    },
    decryptAndHash(ciphertext) {
      const using = currentKey();
      const plaintext =
        using === undefined ? Uint8Array.from(ciphertext) : decryptAead(using, counter, ciphertext, hash);
      if (plaintext === undefined) return undefined;
      if (using !== undefined) counter += 1;
      mixHash(ciphertext);
      return plaintext;
    },
    get overhead() {
      return derived === undefined ? 0 : 16;
    },
    handshakeHash: () => Uint8Array.from(hash),
    split() {
      const keys = deriveKeys(chainingKey, none, 2);
      const [fromInitiator = none] = keys.first;
      const fromResponder = keys.last();
      keys.wipe();
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

/** Of the two parts together. */
function sha256(first: Uint8Array, second: Uint8Array): Uint8Array {
  return hashOnce('sha256', Buffer.concat([first, second]), 'buffer');
}
