/** Joins handshake messages from successive records (RFC 8446, section 5.1), which may split or combine them. */
import { messageHeaderBytes } from './codes.js';

export interface HandshakeMessage {
  readonly type: number;
  /** The message with its header, as the transcript needs it. */
  readonly bytes: Buffer;
  readonly body: Buffer;
}

export interface MessageReader {
  push(content: Buffer): void;
  /** The next whole message; `malformed` once one is longer than allowed. */
  next(): HandshakeMessage | 'incomplete' | 'malformed';
  /** Whether the last pushed message is still incomplete; keys must not change then. */
  readonly partial: boolean;
}

/** How many pieces are kept apart: each copy of what has come so far is shared by that many. */
const piecesMax = 64;

/** @param lengthMax of a message with its header */
export function createMessageReader(lengthMax: number): MessageReader {
  let pieces: Buffer[] = [];
  let size = 0;
  /** Bytes needed before another look is worthwhile. */
  let wanted = messageHeaderBytes;
  const joined = (): Buffer => {
    const [first] = pieces;
    const whole = pieces.length === 1 && first !== undefined ? first : Buffer.concat(pieces, size);
    pieces = [whole];
    return whole;
  };
  return {
    push(content) {
      pieces.push(content);
      size += content.length;
      if (pieces.length > piecesMax) joined();
    },
    next() {
      if (size < wanted) return 'incomplete';
      const bytes = joined();
      const length = messageHeaderBytes + bytes.readUIntBE(1, 3);
      if (length > lengthMax) return 'malformed';
      wanted = length;
      if (size < wanted) return 'incomplete';
      const whole = bytes.subarray(0, length);
      pieces = size === length ? [] : [bytes.subarray(length)];
      size -= length;
      wanted = messageHeaderBytes;
      return { type: whole[0] ?? 0, bytes: whole, body: whole.subarray(messageHeaderBytes) };
    },
    get partial() {
      return size > 0;
    },
  };
}
