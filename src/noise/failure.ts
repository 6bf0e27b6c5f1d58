/**
 * What can go wrong in a handshake or a session, as data. Not an exception: a hostile peer is an ordinary case, and
 * a failure carries no byte of what was received or derived.
 */
import type { Result } from '../kernel/result.js';

export type NoiseFailure =
  /** Shorter than its keys and tags, or longer than a Noise message may be. */
  | 'wrong_length'
  /** A Diffie-Hellman result of all zeros: the peer's key has small order. */
  | 'weak_public_key'
  /** A tag that does not verify: wrong key, wrong PSK, wrong prologue, or altered bytes. */
  | 'bad_tag'
  /** Not the next sequence number of this direction. */
  | 'wrong_sequence'
  /** Used again after its end: a handshake step taken twice, or a wiped cipher state. */
  | 'finished';

export type NoiseResult<T> = Result<T, NoiseFailure>;

/** The longest Noise message (Noise revision 34, section 3). */
export const maxNoiseMessageBytes = 65_535;
export const tagBytes = 16;
export const maxPlaintextBytes = maxNoiseMessageBytes - tagBytes;
