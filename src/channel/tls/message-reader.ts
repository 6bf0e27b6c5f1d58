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

/** @param lengthMax of a message with its header */
export function createMessageReader(lengthMax: number): MessageReader {
  let bytes: Buffer = Buffer.alloc(0);
  return {
    push(content) {
      bytes = bytes.length === 0 ? content : Buffer.concat([bytes, content]);
    },
    next() {
      if (bytes.length < messageHeaderBytes) return 'incomplete';
      const length = messageHeaderBytes + bytes.readUIntBE(1, 3);
      if (length > lengthMax) return 'malformed';
      if (bytes.length < length) return 'incomplete';
      const whole = bytes.subarray(0, length);
      bytes = bytes.subarray(length);
      return { type: whole[0] ?? 0, bytes: whole, body: whole.subarray(messageHeaderBytes) };
    },
    get partial() {
      return bytes.length > 0;
    },
  };
}
