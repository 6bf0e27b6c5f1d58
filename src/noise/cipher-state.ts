/**
 * One direction of an established session: a key and the number of the next message. Not a handshake. The state counts
 * by itself, so that no caller can use a nonce twice.
 * Implements `docs/contract/agent-protocol.md#control`: nonce = sequence, from 0, rising by 1; empty associated data.
 */
import { err, ok } from '../kernel/result.js';
import { decryptAead, encryptAead } from './aead.js';
import { maxNoiseMessageBytes, maxPlaintextBytes, tagBytes } from './failure.js';
import type { NoiseResult } from './failure.js';

export interface CipherState {
  /** The sequence that the next message of this direction must carry. */
  readonly nextSequence: number;
  /** Ciphertext with its tag. Fails on a sequence that is not next, or more than 65,519 bytes. */
  encrypt(sequence: number | bigint, plaintext: Uint8Array): NoiseResult<Uint8Array>;
  /** Plaintext in its own memory. Fails on a sequence that is not next, a wrong length or a bad tag. */
  decrypt(sequence: number | bigint, ciphertext: Uint8Array): NoiseResult<Uint8Array>;
  /** Overwrites the key; later calls fail with `finished`. */
  wipe(): void;
}

/** Takes ownership of the 32-byte key: `wipe` overwrites it. */
export function createCipherState(key: Uint8Array): CipherState {
  let next = 0;
  let wiped = false;

  // Numbers above 2^53 are not exact; no session gets that far.
  const isNext = (sequence: number | bigint): boolean => Number(sequence) === next && next < Number.MAX_SAFE_INTEGER;

  return {
    get nextSequence() {
      return next;
    },
    encrypt(sequence, plaintext) {
      if (wiped) return err('finished');
      if (!isNext(sequence)) return err('wrong_sequence');
      if (plaintext.length > maxPlaintextBytes) return err('wrong_length');
      const ciphertext = encryptAead(key, next, plaintext);
      next += 1;
      return ok(ciphertext);
    },
    decrypt(sequence, ciphertext) {
      if (wiped) return err('finished');
      if (!isNext(sequence)) return err('wrong_sequence');
      if (ciphertext.length < tagBytes || ciphertext.length > maxNoiseMessageBytes) return err('wrong_length');
      const plaintext = decryptAead(key, next, ciphertext);
      if (plaintext === undefined) return err('bad_tag');
      next += 1;
      return ok(plaintext);
    },
    wipe() {
      wiped = true;
      key.fill(0);
    },
  };
}
