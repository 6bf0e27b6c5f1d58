/** The primitives from libsodium, through the prebuilt addon `sodium-native`. The addon is missing on some platforms. */
import { createRequire } from 'node:module';
import { tagBytes, type Aead, type Primitives } from './primitives.js';

/** Types of the functions used here, because the package has none. Failures are thrown as errors. */
interface Sodium {
  crypto_scalarmult_base(publicKey: Uint8Array, privateKey: Uint8Array): void;
  crypto_scalarmult(shared: Uint8Array, privateKey: Uint8Array, publicKey: Uint8Array): void;
  crypto_hash_sha256(out: Uint8Array, input: Uint8Array): void;
  readonly crypto_aead_chacha20poly1305_ietf_encrypt: Encrypt;
  readonly crypto_aead_chacha20poly1305_ietf_decrypt: Decrypt;
  readonly crypto_aead_xchacha20poly1305_ietf_encrypt: Encrypt;
  readonly crypto_aead_xchacha20poly1305_ietf_decrypt: Decrypt;
}

type Encrypt = (
  out: Uint8Array,
  plaintext: Uint8Array,
  associated: Uint8Array,
  unused: null,
  nonce: Uint8Array,
  key: Uint8Array,
) => void;

type Decrypt = (
  out: Uint8Array,
  unused: null,
  sealed: Uint8Array,
  associated: Uint8Array,
  nonce: Uint8Array,
  key: Uint8Array,
) => void;

/**
 * Loads the addon.
 * @throws if the addon does not exist for this platform or does not load
 */
export function loadSodium(): Primitives {
  const require = createRequire(import.meta.url);
  const sodium = require('sodium-native') as Sodium;
  return {
    name: 'sodium-native',
    x25519Public(privateKey) {
      const publicKey = Buffer.alloc(32);
      sodium.crypto_scalarmult_base(publicKey, privateKey);
      return publicKey;
    },
    x25519Agree(privateKey, publicKey) {
      const shared = Buffer.allocUnsafe(32);
      try {
        sodium.crypto_scalarmult(shared, privateKey, publicKey);
      } catch {
        // libsodium refuses public keys of small order and all-zero results.
        return undefined;
      }
      return shared;
    },
    chacha: aead(sodium.crypto_aead_chacha20poly1305_ietf_encrypt, sodium.crypto_aead_chacha20poly1305_ietf_decrypt),
    xchacha: aead(sodium.crypto_aead_xchacha20poly1305_ietf_encrypt, sodium.crypto_aead_xchacha20poly1305_ietf_decrypt),
    sha256(...parts) {
      const [only, ...more] = parts;
      const input = only !== undefined && more.length === 0 ? only : Buffer.concat(parts);
      const out = Buffer.allocUnsafe(32);
      sodium.crypto_hash_sha256(out, input);
      return out;
    },
  };
}

function aead(encrypt: Encrypt, decrypt: Decrypt): Aead {
  return {
    seal(key, nonce, plaintext, associated) {
      const sealed = Buffer.allocUnsafe(plaintext.length + tagBytes);
      encrypt(sealed, plaintext, associated, null, nonce, key);
      return sealed;
    },
    open(key, nonce, sealed, associated) {
      const plaintext = Buffer.allocUnsafeSlow(sealed.length - tagBytes);
      try {
        decrypt(plaintext, null, sealed, associated, nonce, key);
      } catch {
        plaintext.fill(0);
        return undefined;
      }
      return plaintext;
    },
  };
}
