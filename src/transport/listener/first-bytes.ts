/**
 * Tells from the first bytes of a connection whether it speaks h2c. Pure. What REALITY makes of the others is in `reality/`.
 * Implements `docs/contract/agent-protocol.md#the-listener`.
 */

/** The preface of HTTP/2 with prior knowledge (RFC 9113, section 3.4). */
export const h2cPreface: Uint8Array = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 'latin1');

type FirstBytes =
  | 'h2c'
  /** The beginning of the preface: more bytes are needed. */
  | 'undecided'
  | 'foreign';

/** Judges all bytes received so far. No bytes are `undecided`. */
export function judgeFirstBytes(bytes: Uint8Array): FirstBytes {
  const length = Math.min(bytes.length, h2cPreface.length);
  for (let index = 0; index < length; index += 1) {
    if (bytes[index] !== h2cPreface[index]) return 'foreign';
  }
  return bytes.length >= h2cPreface.length ? 'h2c' : 'undecided';
}
