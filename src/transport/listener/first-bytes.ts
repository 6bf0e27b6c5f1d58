/**
 * What a connection speaks, judged by its first bytes. Pure. Today there are two kinds; REALITY becomes a third verdict
 * here and a branch in `listener.ts`. Implements `docs/contract/agent-protocol.md#the-listener`.
 */

/** The preface of HTTP/2 with prior knowledge (RFC 9113, section 3.4). */
export const h2cPreface: Uint8Array = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 'latin1');

export type FirstBytes =
  | 'h2c'
  /** A beginning of the preface: more bytes decide. */
  | 'undecided'
  | 'foreign';

/** Judges all bytes that have come so far. No byte at all is undecided. */
export function judgeFirstBytes(bytes: Uint8Array): FirstBytes {
  const length = Math.min(bytes.length, h2cPreface.length);
  for (let index = 0; index < length; index += 1) {
    if (bytes[index] !== h2cPreface[index]) return 'foreign';
  }
  return bytes.length >= h2cPreface.length ? 'h2c' : 'undecided';
}
