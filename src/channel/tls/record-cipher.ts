/**
 * One direction of encrypted records (RFC 8446, section 5.2): seals contents into whole records, padded on request, and
 * opens records. `record-reader.ts` frames them in a byte stream.
 */
import { createCipheriv, createDecipheriv, type CipherGCM, type CipherGCMTypes, type DecipherGCM } from 'node:crypto';
import { plaintextMax, recordHeaderBytes, recordType } from './codes.js';
import { expandLabel, nextSecret } from './key-schedule.js';
import type { Suite } from './suites.js';

const tagBytes = 16;
/** The overhead of a sealed record: header, content type, tag. */
export const recordOverhead = recordHeaderBytes + 1 + tagBytes;

export interface Opened {
  /** The content type. */
  readonly type: number;
  readonly content: Buffer;
}

export interface RecordCipher {
  /**
   * A whole record with the content, which has at most 16,384 bytes.
   * @param recordBytes pads the record to this length, header included; at least `recordOverhead` plus the content
   */
  seal(type: number, content: Uint8Array, recordBytes?: number): Buffer;
  /** The content of a whole record without its padding; undefined if it was not sealed with these keys, or is empty. */
  open(record: Buffer): Opened | undefined;
  /** How many records these keys have sealed or opened. */
  readonly count: number;
  /** Switches to the keys of the next generation, after a KeyUpdate. */
  update(): void;
}

/** @param secret traffic secret of the sealing side */
export function createRecordCipher(suite: Suite, secret: Uint8Array): RecordCipher {
  let current = secret;
  let key: Buffer = Buffer.alloc(0);
  let iv: Buffer = Buffer.alloc(0);
  let count = 0;
  const none = Buffer.alloc(0);
  const takeKeys = (): void => {
    key = expandLabel(suite, current, 'key', none, suite.keyBytes);
    iv = expandLabel(suite, current, 'iv', none, 12);
    count = 0;
  };
  takeKeys();
  // Node types all AEADs as GCM; ChaCha20-Poly1305 is called the same way.
  const algorithm = suite.aead as CipherGCMTypes;
  const options = { authTagLength: tagBytes };

  /** The counter stays far below 2^48: keys are updated long before. */
  const nonce = (): Buffer => {
    const bytes = Buffer.from(iv);
    const at = bytes.length - 6;
    bytes.writeUIntBE(xor48(bytes.readUIntBE(at, 6), count), at, 6);
    count += 1;
    return bytes;
  };

  return {
    seal(type, content, recordBytes = recordOverhead + content.length) {
      const padding = recordBytes - recordOverhead - content.length;
      if (padding < 0 || content.length + padding > plaintextMax) {
        throw new RangeError(`a record of ${recordBytes} bytes cannot hold ${content.length}`);
      }
      const header = Buffer.of(recordType.applicationData, 3, 3, 0, 0);
      header.writeUInt16BE(recordBytes - recordHeaderBytes, 3);
      const cipher: CipherGCM = createCipheriv(algorithm, key, nonce(), options);
      cipher.setAAD(header);
      const inner = Buffer.alloc(1 + padding);
      inner[0] = type;
      const parts = [header, cipher.update(content), cipher.update(inner)];
      cipher.final();
      return Buffer.concat([...parts, cipher.getAuthTag()]);
    },
    open(record) {
      const end = record.length - tagBytes;
      if (record[0] !== recordType.applicationData || end <= recordHeaderBytes) return undefined;
      const decipher: DecipherGCM = createDecipheriv(algorithm, key, nonce(), options);
      decipher.setAAD(record.subarray(0, recordHeaderBytes));
      decipher.setAuthTag(record.subarray(end));
      const inner = decipher.update(record.subarray(recordHeaderBytes, end));
      try {
        decipher.final();
      } catch {
        return undefined;
      }
      return withoutPadding(inner);
    },
    get count() {
      return count;
    },
    update() {
      current = nextSecret(suite, current);
      takeKeys();
    },
  };
}

/** XOR of numbers below 2^48, because JavaScript's operator has 32 bits. */
function xor48(left: number, right: number): number {
  const half = 2 ** 24;
  const high = Math.floor(left / half) ^ Math.floor(right / half);
  return high * half + (((left % half) ^ (right % half)) >>> 0);
}

/** The type is the last non-zero byte. */
function withoutPadding(inner: Buffer): Opened | undefined {
  let end = inner.length - 1;
  while (end >= 0 && inner[end] === 0) end -= 1;
  if (end < 0 || end > plaintextMax) return undefined;
  return { type: inner[end] ?? 0, content: inner.subarray(0, end) };
}
