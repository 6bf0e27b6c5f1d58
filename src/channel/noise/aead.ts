/**
 * ChaCha20-Poly1305 with Noise nonces (revision 34, section 12.3). Stateless: the counters are in `cipher-state.ts` and
 * `symmetric-state.ts`.
 */
import { chacha } from '../../kernel/crypto/crypto.js';

const none = new Uint8Array(0);
/** Reused: the running call copies it. */
const nonce = Buffer.alloc(12);

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
  return chacha.seal(key, nonceOf(counter), plaintext, associated);
}

/** The plaintext; undefined when the tag is missing or does not verify. Unverified bytes are never returned. */
export function decryptAead(
  key: Uint8Array,
  counter: number,
  ciphertext: Uint8Array,
  associated: Uint8Array = none,
): Uint8Array | undefined {
  return chacha.open(key, nonceOf(counter), ciphertext, associated);
}
