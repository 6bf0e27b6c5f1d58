/** The primitives in JavaScript, from @noble, for platforms where no addon loads: correct everywhere, and many times slower. */
import { chacha20poly1305, xchacha20poly1305 } from '@noble/ciphers/chacha.js';
import { x25519 } from '@noble/curves/ed25519.js';
import { sha256 } from '@noble/hashes/sha2.js';
import type { Aead, Primitives } from './primitives.js';

export const noble: Primitives = {
  name: '@noble',
  x25519Public: (privateKey) => x25519.getPublicKey(privateKey),
  x25519Agree: (privateKey, publicKey) => orUndefined(() => x25519.getSharedSecret(privateKey, publicKey)),
  chacha: aead(chacha20poly1305),
  xchacha: aead(xchacha20poly1305),
  sha256(...parts) {
    const running = sha256.create();
    for (const part of parts) running.update(part);
    return running.digest();
  },
};

function aead(cipher: typeof chacha20poly1305): Aead {
  return {
    seal: (key, nonce, plaintext, associated) => cipher(key, nonce, associated).encrypt(plaintext),
    open: (key, nonce, sealed, associated) => orUndefined(() => cipher(key, nonce, associated).decrypt(sealed)),
  };
}

/** For keys and ciphertexts from a peer: @noble throws for keys that it refuses. */
function orUndefined<T>(compute: () => T): T | undefined {
  try {
    return compute();
  } catch {
    return undefined;
  }
}
