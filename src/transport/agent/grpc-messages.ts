/** Messages in gRPC framing: cuts the bytes of a call into messages and back. Pure. Implements `docs/contract/wire.md#services`. */
import { gunzipSync, inflateSync } from 'node:zlib';
import { limits } from '../../kernel/limits.js';

/** One byte for the compression flag, then four for the length. @internal exported for tests */
export const messageHeadBytes = 5;

/** A class, because each agent has one: see `src/channel/noise/cipher-state.ts`. */
export class MessageReader {
  /** Bytes that `next` has not returned yet start at `#at`. */
  #bytes: Buffer | undefined;
  #at = 0;
  /** Pieces of an incomplete message, or of its head; undefined without one, as between two heartbeats. */
  #parts: Buffer[] | undefined;
  /** The number of bytes still missing. */
  #missing = 0;
  /** Whether the last message is compressed. */
  compressed = false;

  /** Call only after `next` has returned everything else. */
  add(piece: Buffer): void {
    if (this.#parts === undefined) {
      this.#hold(piece);
      return;
    }
    this.#parts.push(piece);
    this.#missing -= piece.length;
    if (this.#missing > 0) return;
    this.#hold(Buffer.concat(this.#parts));
    this.#parts = undefined;
  }
  /**
   * The next message, which may share the memory of its piece; undefined if it is incomplete. Once one is too large,
   * the rest cannot be read.
   */
  next(): Buffer | 'too_large' | undefined {
    const bytes = this.#bytes;
    if (bytes === undefined) return undefined;
    const from = this.#at + messageHeadBytes;
    let missing = from - bytes.length;
    if (missing <= 0) {
      const length = bytes.readUInt32BE(from - 4);
      if (length > limits.agent.grpcMessageBytes) return 'too_large';
      missing += length;
      if (missing <= 0) {
        const end = from + length;
        this.compressed = bytes[this.#at] === 1;
        this.#at = end;
        if (end === bytes.length) this.#bytes = undefined;
        return bytes.subarray(from, end);
      }
    }
    this.#parts = [bytes.subarray(this.#at)];
    this.#missing = missing;
    this.#bytes = undefined;
    return undefined;
  }
  #hold(bytes: Buffer): void {
    this.#at = 0;
    this.#bytes = bytes.length === 0 ? undefined : bytes;
  }
}

/** A message in gRPC framing: uncompressed, its length, its bytes. */
export function framedMessage(bytes: Uint8Array): Buffer {
  const framed = Buffer.allocUnsafe(messageHeadBytes + bytes.length);
  framed[0] = 0;
  framed.writeUInt32BE(bytes.length, 1);
  framed.set(bytes, messageHeadBytes);
  return framed;
}

/** What `decompressed` accepts, as a gRPC header. */
export const acceptedEncodings = 'identity,deflate,gzip';

/** Decompresses a message, which must not exceed the limit of uncompressed ones. @param encoding of its call */
export function decompressed(encoding: string, bytes: Buffer): Buffer | 'too_large' | 'invalid' | 'unknown_encoding' {
  if (encoding === 'identity') return bytes;
  if (encoding !== 'gzip' && encoding !== 'deflate') return 'unknown_encoding';
  try {
    return (encoding === 'gzip' ? gunzipSync : inflateSync)(bytes, { maxOutputLength: limits.agent.grpcMessageBytes });
  } catch (error) {
    return error instanceof RangeError ? 'too_large' : 'invalid';
  }
}
