/**
 * One direction of an established session: a key and the number of the next message. Not a handshake. The state does
 * the counting, so that no caller can use a nonce twice. Implements `docs/contract/agent-protocol.md#control`: nonce =
 * sequence, from 0, rising by 1; empty associated data.
 */
import { err, ok } from '../../kernel/result.js';
import { decryptAead, encryptAead } from './aead.js';
import { maxNoiseMessageBytes, maxPlaintextBytes, tagBytes, type NoiseResult } from './failure.js';

/** A class, because each agent has two: an object of functions would take 1.5 KiB more and be slower to call. */
export class CipherState {
  readonly #key: Uint8Array;
  #next = 0;
  #wiped = false;

  /** Takes ownership of the 32-byte key: `wipe` overwrites it. */
  constructor(key: Uint8Array) {
    this.#key = key;
  }

  /** The sequence that the next message of this direction must carry. */
  get nextSequence(): number {
    return this.#next;
  }
  /** Ciphertext with its tag. Fails on a sequence that is not next, or on more than 65,519 bytes. */
  encrypt(sequence: number | bigint, plaintext: Uint8Array): NoiseResult<Uint8Array> {
    if (this.#wiped) return err('finished');
    if (!this.#isNext(sequence)) return err('wrong_sequence');
    if (plaintext.length > maxPlaintextBytes) return err('wrong_length');
    const ciphertext = encryptAead(this.#key, this.#next, plaintext);
    this.#next += 1;
    return ok(ciphertext);
  }
  /** Plaintext in its own memory. Fails on a sequence that is not next, a wrong length or a bad tag. */
  decrypt(sequence: number | bigint, ciphertext: Uint8Array): NoiseResult<Uint8Array> {
    if (this.#wiped) return err('finished');
    if (!this.#isNext(sequence)) return err('wrong_sequence');
    const plaintext = this.decryptAt(this.#next, ciphertext);
    if (plaintext.ok) this.#next += 1;
    return plaintext;
  }
  /**
   * Opens a message in any order, for datagrams (Noise, section 11.4), and counts nothing: the caller must remember the
   * sequences it has seen. Never mixed with `decrypt` on one state.
   */
  decryptAt(sequence: number, ciphertext: Uint8Array): NoiseResult<Uint8Array> {
    if (this.#wiped) return err('finished');
    if (ciphertext.length < tagBytes || ciphertext.length > maxNoiseMessageBytes) return err('wrong_length');
    const plaintext = decryptAead(this.#key, sequence, ciphertext);
    return plaintext === undefined ? err('bad_tag') : ok(plaintext);
  }
  /** Overwrites the key; later calls fail with `finished`. */
  wipe(): void {
    this.#wiped = true;
    this.#key.fill(0);
  }
  /** Numbers above 2^53 are inexact; no session gets that far. */
  #isNext(sequence: number | bigint): boolean {
    return Number(sequence) === this.#next && this.#next < Number.MAX_SAFE_INTEGER;
  }
}
