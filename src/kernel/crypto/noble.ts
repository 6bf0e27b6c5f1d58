/**
 * The primitives in JavaScript, from @noble, for platforms where no addon loads: correct everywhere, and many times slower. Each datagram
 * of ENC is sealed with ChaCha20-Poly1305, so that is node:crypto's, which has no XChaCha.
 */
import { createCipheriv, createDecipheriv } from 'node:crypto';
import { xchacha20poly1305 } from '@noble/ciphers/chacha.js';
import { x25519 } from '@noble/curves/ed25519.js';
import { sha256 } from '@noble/hashes/sha2.js';
import { tagBytes } from './primitives.js';
import type { Primitives } from './primitives.js';

const algorithm = 'chacha20-poly1305';
const options = { authTagLength: tagBytes } as const;

export const noble: Primitives = {
  name: '@noble',
  x25519Public: (privateKey) => x25519.getPublicKey(privateKey),
  x25519Agree: (privateKey, publicKey) => orUndefined(() => x25519.getSharedSecret(privateKey, publicKey)),
  chacha: {
    seal(key, nonce, plaintext, associated) {
      const cipher = createCipheriv(algorithm, key, nonce, options);
      cipher.setAAD(associated, { plaintextLength: plaintext.length });
      const sealed = cipher.update(plaintext);
      cipher.final();
      return Buffer.concat([sealed, cipher.getAuthTag()]);
    },
    open(key, nonce, sealed, associated) {
      const end = sealed.length - tagBytes;
      const decipher = createDecipheriv(algorithm, key, nonce, options);
      decipher.setAAD(associated, { plaintextLength: end });
      decipher.setAuthTag(sealed.subarray(end));
      const plaintext = decipher.update(sealed.subarray(0, end));
      try {
        decipher.final();
      } catch {
        plaintext.fill(0);
        return undefined;
      }
      return plaintext;
    },
  },
  xchacha: {
    seal: (key, nonce, plaintext, associated) => xchacha20poly1305(key, nonce, associated).encrypt(plaintext),
    open: (key, nonce, sealed, associated) =>
      orUndefined(() => xchacha20poly1305(key, nonce, associated).decrypt(sealed)),
  },
  sha256(...parts) {
    const running = sha256.create();
    for (const part of parts) running.update(part);
    return running.digest();
  },
};

/** For keys and ciphertexts from a peer: @noble throws for keys that it refuses. */
function orUndefined<T>(compute: () => T): T | undefined {
  try {
    return compute();
  } catch {
    return undefined;
  }
}
