/**
 * ChaCha20-Poly1305 with the nonce layout of Noise (revision 34, section 12.3), on node:crypto, which is 2 to 8 times
 * faster than pure JavaScript. Without state: the counters are in `cipher-state.ts` and `symmetric-state.ts`.
 */
import { createCipheriv, createDecipheriv } from 'node:crypto';
import { tagBytes } from './failure.js';

const algorithm = 'chacha20-poly1305';
const options = { authTagLength: tagBytes };
const none = new Uint8Array(0);
/** Of the cipher that is being made, which copies it. */
const nonce = Buffer.alloc(12);

// Without associated data OpenSSL counts none, as for an empty one: only the handshake pays for setting it.

/** Four zero bytes, then the counter as 64 bits little-endian. */
function nonceOf(counter: number): Buffer {
  nonce.writeUInt32LE(counter % 0x1_0000_0000, 4);
  nonce.writeUInt32LE(Math.floor(counter / 0x1_0000_0000), 8);
  return nonce;
}

/** Ciphertext followed by its 16-byte tag. */
export function encryptAead(
  key: Uint8Array,
  counter: number,
  plaintext: Uint8Array,
  associated: Uint8Array = none,
): Uint8Array {
  const cipher = createCipheriv(algorithm, key, nonceOf(counter), options);
  if (associated.length > 0) cipher.setAAD(associated, { plaintextLength: plaintext.length });
  const body = cipher.update(plaintext);
  cipher.final();
  const sealed = Buffer.allocUnsafe(body.length + tagBytes);
  sealed.set(body);
  sealed.set(cipher.getAuthTag(), body.length);
  return sealed;
}

/** The plaintext; undefined when the tag is missing or does not verify. Unverified bytes are never returned. */
export function decryptAead(
  key: Uint8Array,
  counter: number,
  ciphertext: Uint8Array,
  associated: Uint8Array = none,
): Uint8Array | undefined {
  const length = ciphertext.length - tagBytes;
  if (length < 0) return undefined;
  const decipher = createDecipheriv(algorithm, key, nonceOf(counter), options);
  if (associated.length > 0) decipher.setAAD(associated, { plaintextLength: length });
  decipher.setAuthTag(ciphertext.subarray(length));
  const plaintext = decipher.update(ciphertext.subarray(0, length));
  try {
    decipher.final();
  } catch {
    plaintext.fill(0);
    return undefined;
  }
  return plaintext;
}
