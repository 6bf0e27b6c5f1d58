/**
 * XChaCha20-Poly1305 (draft-irtf-cfrg-xchacha-03). Its 24-byte nonces can be random, so many writers can use one key.
 * HChaCha20 from @noble derives the subkey; node:crypto encrypts, which is eight times faster on snapshots.
 * Does not know what it seals: callers choose keys and associated data.
 */
import { createCipheriv, createDecipheriv } from 'node:crypto';
import { hchacha } from '@noble/ciphers/chacha.js';

export const xchachaKeyBytes = 32;
export const xchachaNonceBytes = 24;
const tagBytes = 16;
const algorithm = 'chacha20-poly1305';
const options = { authTagLength: tagBytes };
/** "expand 32-byte k" as four little-endian words. */
const sigma = Uint32Array.of(0x61707865, 0x3320646e, 0x79622d32, 0x6b206574);
/** Of the subkey that is being derived: one edit of a fleet seals a snapshot for each node. */
const keyWords = new Uint32Array(8);
const nonceWords = new Uint32Array(4);

/** @returns the ciphertext followed by its tag */
export function sealXChaCha(
  key: Uint8Array,
  nonce: Uint8Array,
  plaintext: Uint8Array,
  associated: Uint8Array,
): Uint8Array {
  const subkey = subkeyOf(key, nonce);
  const cipher = createCipheriv(algorithm, subkey, innerNonce(nonce), options);
  cipher.setAAD(associated, { plaintextLength: plaintext.length });
  const body = cipher.update(plaintext);
  cipher.final();
  subkey.fill(0);
  return Buffer.concat([body, cipher.getAuthTag()], body.length + tagBytes);
}

/** @returns the plaintext, or undefined when the tag is missing or does not verify */
export function openXChaCha(
  key: Uint8Array,
  nonce: Uint8Array,
  ciphertext: Uint8Array,
  associated: Uint8Array,
): Uint8Array | undefined {
  const length = ciphertext.length - tagBytes;
  if (length < 0) return undefined;
  const subkey = subkeyOf(key, nonce);
  const decipher = createDecipheriv(algorithm, subkey, innerNonce(nonce), options);
  decipher.setAAD(associated, { plaintextLength: length });
  decipher.setAuthTag(ciphertext.subarray(length));
  const plaintext = decipher.update(ciphertext.subarray(0, length));
  subkey.fill(0);
  try {
    decipher.final();
  } catch {
    plaintext.fill(0);
    return undefined;
  }
  return plaintext;
}

function subkeyOf(key: Uint8Array, nonce: Uint8Array): Uint8Array {
  if (key.length !== xchachaKeyBytes) throw new RangeError(`key: expected 32 bytes, got ${key.length}`);
  if (nonce.length !== xchachaNonceBytes) throw new RangeError(`nonce: expected 24 bytes, got ${nonce.length}`);
  // Copied, because a view of a larger buffer may not be aligned to words.
  new Uint8Array(keyWords.buffer).set(key);
  new Uint8Array(nonceWords.buffer).set(nonce.subarray(0, 16));
  const out = new Uint32Array(8);
  hchacha(sigma, keyWords, nonceWords, out);
  keyWords.fill(0);
  return new Uint8Array(out.buffer);
}

function innerNonce(nonce: Uint8Array): Uint8Array {
  const inner = new Uint8Array(12);
  inner.set(nonce.subarray(16), 4);
  return inner;
}
