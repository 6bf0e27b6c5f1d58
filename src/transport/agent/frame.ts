/**
 * Reads and writes `SecureFrame`, the envelope of every message of a Control stream. Reading is strict: bytes that an
 * encoder would not write are refused. Implements `docs/contract/wire.md#session`.
 */
import { SecureFrame } from '../../gen/svc/control/v1/session.js';
import { decodeStrictly } from './wire-scan.js';

export interface Frame {
  /** Empty when absent. */
  readonly sessionId: Uint8Array;
  /** Exact up to 2^53; anything above is out of order anyway. */
  readonly sequence: number;
  readonly ciphertext: Uint8Array;
}

/** The frame, or undefined if the bytes do not parse. */
export function decodeFrame(bytes: Uint8Array): Frame | undefined {
  const decoded = decodeStrictly(SecureFrame, bytes);
  return decoded.ok ? { ...decoded.value, sequence: Number(decoded.value.sequence) } : undefined;
}

/** Encodes a frame of the service, which never has a session id. */
export function encodeFrame(sequence: number, ciphertext: Uint8Array): Uint8Array {
  const bytes = Buffer.from(ciphertext.buffer, ciphertext.byteOffset, ciphertext.byteLength);
  return SecureFrame.encode({ sessionId: Buffer.alloc(0), sequence: BigInt(sequence), ciphertext: bytes }).finish();
}
