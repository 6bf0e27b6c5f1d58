/**
 * Cuts the bytes of one call into gRPC messages. The library's own decoder copies each message once more, wraps it in
 * three promises, and keeps the last one of every quiet agent in memory. The library reads calls that announce
 * compression. Pure. Follows the length-prefixed messages of gRPC over HTTP/2.
 */
import { limits } from '../../kernel/limits.js';

/** Whether it is compressed, in one byte, and its length in four. @internal exported for tests */
export const messageHeadBytes = 5;

/** A class, because there is one for each agent: see `src/channel/noise/cipher-state.ts`. */
export class MessageReader {
  /** Not given out yet, from `#at` on. */
  #bytes: Buffer | undefined;
  #at = 0;
  /** Pieces of a message that is not complete, or of its head; undefined without one, as between two heartbeats. */
  #parts: Buffer[] | undefined;
  /** The number of bytes still missing. */
  #missing = 0;

  /** Only after `next` has given out everything else. */
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
   * The next message, which may share the memory of its piece; undefined if it is not complete. Once one is too large,
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

/** A message as gRPC frames it: not compressed, its length, its bytes. */
export function framedMessage(bytes: Uint8Array): Buffer {
  const framed = Buffer.allocUnsafe(messageHeadBytes + bytes.length);
  framed[0] = 0;
  framed.writeUInt32BE(bytes.length, 1);
  framed.set(bytes, messageHeadBytes);
  return framed;
}
