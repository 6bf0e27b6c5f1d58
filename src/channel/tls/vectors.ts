/**
 * TLS vectors: fields prefixed with their length (RFC 8446, section 3.4), read and written. A truncated field throws
 * `Malformed`; functions that handle a peer's bytes catch it and return a value instead.
 */

/** Malformed bytes from a peer. `unlessMalformed` catches it. */
export class Malformed extends Error {
  override readonly name = 'Malformed';
}

export interface Reader {
  readonly left: number;
  /** How many bytes were read so far. */
  readonly at: number;
  uint(bytes: 1 | 2 | 3): number;
  take(count: number): Buffer;
  /** The content after a length of this many bytes. */
  vector(lengthBytes: 1 | 2 | 3): Buffer;
  /** @throws Malformed unless everything was read */
  end(): void;
}

/** Reads from the front; returned buffers are views into `bytes`, not copies. */
export function createReader(bytes: Buffer): Reader {
  let at = 0;
  const take = (count: number): Buffer => {
    if (at + count > bytes.length) throw new Malformed('a field is cut off');
    at += count;
    return bytes.subarray(at - count, at);
  };
  const uint = (count: 1 | 2 | 3): number => take(count).readUIntBE(0, count);
  return {
    get left() {
      return bytes.length - at;
    },
    get at() {
      return at;
    },
    uint,
    take,
    vector: (lengthBytes) => take(uint(lengthBytes)),
    end() {
      if (at !== bytes.length) throw new Malformed('bytes are left over');
    },
  };
}

/** Reads all of the bytes as one thing. @throws Malformed if some are left over */
export function readWhole<T>(bytes: Buffer, read: (reader: Reader) => T): T {
  const reader = createReader(bytes);
  const value = read(reader);
  reader.end();
  return value;
}

/** Reads things until nothing is left. @throws Malformed if the last one is cut off */
export function readList<T>(bytes: Buffer, read: (reader: Reader) => T): T[] {
  const reader = createReader(bytes);
  const found: T[] = [];
  while (reader.left > 0) found.push(read(reader));
  return found;
}

/** The value of a reading, or undefined if the bytes are malformed. */
export function unlessMalformed<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch (error) {
    if (error instanceof Malformed) return undefined;
    throw error;
  }
}

/** Big-endian. */
export function uint(bytes: 1 | 2 | 3, value: number): Buffer {
  const out = Buffer.alloc(bytes);
  out.writeUIntBE(value, 0, bytes);
  return out;
}

/** The concatenated parts, prefixed with their length. */
export function vector(lengthBytes: 1 | 2 | 3, ...parts: readonly Uint8Array[]): Buffer {
  const content = Buffer.concat(parts);
  return Buffer.concat([uint(lengthBytes, content.length), content]);
}

/** A handshake message with its header. */
export function message(type: number, ...parts: readonly Uint8Array[]): Buffer {
  return Buffer.concat([uint(1, type), vector(3, ...parts)]);
}

/** An extension of a hello or a certificate. */
export function extensionField(type: number, ...parts: readonly Uint8Array[]): Buffer {
  return Buffer.concat([uint(2, type), vector(2, ...parts)]);
}
