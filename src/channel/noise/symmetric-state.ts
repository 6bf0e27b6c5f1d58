/**
 * The SymmetricState of Noise (revision 34, section 5.2) for SHA-256 and ChaCha20-Poly1305: chaining key, handshake
 * hash, and the key that encrypts the handshake's payloads. Knows nothing of patterns or Diffie-Hellman.
 */
import { hkdfSha256, sha256, sha256Bytes } from '../../kernel/crypto/crypto.js';
import { decryptAead, encryptAead } from './aead.js';
import { CipherState } from './cipher-state.js';
import { tagBytes } from './failure.js';

const none = new Uint8Array(0);

export interface SymmetricState {
  mixHash(data: Uint8Array): void;
  mixKey(material: Uint8Array): void;
  mixKeyAndHash(material: Uint8Array): void;
  encryptAndHash(plaintext: Uint8Array): Uint8Array;
  /** Undefined when the tag does not verify; the state must not be used afterwards. */
  decryptAndHash(ciphertext: Uint8Array): Uint8Array | undefined;
  /** Bytes that encryption currently adds: a tag, or nothing before the first key. */
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
  let hash: Uint8Array = name.length <= sha256Bytes ? Buffer.concat([name], sha256Bytes) : sha256(name);
  const chainingKey = Uint8Array.from(hash);
  const key = new Uint8Array(sha256Bytes);
  let hasKey = false;
  let counter = 0;

  const wipe = (): void => {
    chainingKey.fill(0);
    key.fill(0);
  };
  const mixHash = (data: Uint8Array): void => {
    hash = sha256(hash, data);
  };
  /** HKDF of Noise (section 4.3): the first output is the next chaining key, the last one the next key. */
  const mix = (material: Uint8Array, outputs: 2 | 3): void => {
    const derived = hkdfSha256(chainingKey, material, none, outputs * sha256Bytes);
    chainingKey.set(derived.subarray(0, sha256Bytes));
    if (outputs === 3) mixHash(derived.subarray(sha256Bytes, 2 * sha256Bytes));
    key.set(derived.subarray(-sha256Bytes));
    derived.fill(0);
    hasKey = true;
    counter = 0;
  };

  return {
    mixHash,
    mixKey: (material) => mix(material, 2),
    mixKeyAndHash: (material) => mix(material, 3),
    encryptAndHash(plaintext) {
      const ciphertext = hasKey ? encryptAead(key, counter++, plaintext, hash) : Uint8Array.from(plaintext);
      mixHash(ciphertext);
      return ciphertext;
    },
    decryptAndHash(ciphertext) {
      const plaintext = hasKey ? decryptAead(key, counter, ciphertext, hash) : Uint8Array.from(ciphertext);
      if (plaintext === undefined) return undefined;
      counter += 1;
      mixHash(ciphertext);
      return plaintext;
    },
    get overhead() {
      return hasKey ? tagBytes : 0;
    },
    handshakeHash: () => Uint8Array.from(hash),
    split() {
      const derived = hkdfSha256(chainingKey, none, none, 2 * sha256Bytes);
      const fromInitiator = Uint8Array.from(derived.subarray(0, sha256Bytes));
      const fromResponder = Uint8Array.from(derived.subarray(sha256Bytes));
      derived.fill(0);
      wipe();
      return [new CipherState(fromInitiator), new CipherState(fromResponder)];
    },
    wipe,
  };
}
