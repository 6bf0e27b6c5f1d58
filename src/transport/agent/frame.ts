/**
 * Reads and writes `SecureFrame` by hand: it is the most frequent message, and reading must be strict. A test compares
 * the bytes with the generated code. Implements `docs/contract/wire.md#session`.
 */
import { emptyField, malformed, readField } from './wire-scan.js';

export interface Frame {
  /** Empty when absent. */
  readonly sessionId: Uint8Array;
  /** Exact up to 2^53; anything above is out of order anyway. */
  readonly sequence: number;
  readonly ciphertext: Uint8Array;
}

const sequenceTag = (2 << 3) | 0;
const ciphertextTag = (3 << 3) | 2;
const none = new Uint8Array(0);
/** Of the frame that is being read. */
const field = emptyField();

/** The frame, or undefined if the bytes do not parse. Its fields share the memory of `bytes`. */
export function decodeFrame(bytes: Uint8Array): Frame | undefined {
  let sessionId: Uint8Array = none;
  let sequence = 0;
  let ciphertext: Uint8Array = none;
  for (let position = 0; position < bytes.length;) {
    position = readField(bytes, position, bytes.length, field);
    if (position === malformed) return undefined;
    if (field.number === 1 && field.wireType === 2) sessionId = bytes.subarray(field.start, field.end);
    else if (field.number === 2 && field.wireType === 0) sequence = field.varint;
    else if (field.number === 3 && field.wireType === 2) ciphertext = bytes.subarray(field.start, field.end);
  }
  return { sessionId, sequence, ciphertext };
}

/** Encodes a frame of the service, which never has a session id. */
export function encodeFrame(sequence: number, ciphertext: Uint8Array): Buffer {
  // proto3 leaves out a zero.
  const sequenceBytes = sequence === 0 ? 0 : 1 + varintLength(sequence);
  const lengthBytes = ciphertext.length === 0 ? 0 : 1 + varintLength(ciphertext.length);
  const frame = Buffer.allocUnsafe(sequenceBytes + lengthBytes + ciphertext.length);
  let offset = 0;
  if (sequenceBytes > 0) {
    frame[offset] = sequenceTag;
    offset = writeVarint(frame, offset + 1, sequence);
  }
  if (lengthBytes > 0) {
    frame[offset] = ciphertextTag;
    offset = writeVarint(frame, offset + 1, ciphertext.length);
    frame.set(ciphertext, offset);
  }
  return frame;
}

/** Bytes of a varint. */
export function varintLength(value: number): number {
  let length = 1;
  for (let rest = value; rest >= 128; rest = Math.floor(rest / 128)) length += 1;
  return length;
}

/** @returns the position behind it */
export function writeVarint(target: Buffer, at: number, value: number): number {
  let offset = at;
  let rest = value;
  while (rest >= 128) {
    target[offset] = (rest % 128) | 0x80;
    rest = Math.floor(rest / 128);
    offset += 1;
  }
  target[offset] = rest;
  return offset + 1;
}
