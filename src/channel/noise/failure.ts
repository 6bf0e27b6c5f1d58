/**
 * Failures of a handshake or a session. They are values rather than exceptions, because a hostile peer is an ordinary
 * case. A failure contains no received or derived bytes.
 */
import type { Result } from '../../kernel/result.js';

export type NoiseFailure =
  /** Shorter than its keys and tags, or longer than a Noise message may be. */
  | 'wrong_length'
  /** The Diffie-Hellman result is all zeros, because the peer's key has small order. */
  | 'weak_public_key'
  /** The tag does not verify: wrong key, PSK or prologue, or altered bytes. */
  | 'bad_tag'
  /** Not the next sequence number of this direction. */
  | 'wrong_sequence'
  /** Used after its end: a repeated handshake step, or a wiped cipher state. */
  | 'finished';

export type NoiseResult<T> = Result<T, NoiseFailure>;

/** The longest Noise message (Noise revision 34, section 3). */
export const maxNoiseMessageBytes = 65_535;
export const tagBytes = 16;
export const maxPlaintextBytes = maxNoiseMessageBytes - tagBytes;
