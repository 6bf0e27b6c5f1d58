/**
 * Splits payloads larger than one Noise message, and joins them within limits. Pure: the owner enforces deadlines and
 * the bound over all sessions. Implements `docs/contract/agent-protocol.md#control`: plaintext = 1 byte (0x00 last,
 * 0x01 more follow) + fragment.
 */
import { limits } from '../../kernel/limits.js';
import { maxPlaintextBytes } from './failure.js';

const lastFragment = 0x00;
const moreFollow = 0x01;

/** The capacity of one plaintext without its fragment byte. */
export const maxFragmentBytes = maxPlaintextBytes - 1;

/**
 * Splits a payload into plaintexts ready to encrypt; every fragment but the last has the maximum length. Sessions may
 * share the plaintexts, because encrypting does not change them. An empty payload becomes one empty fragment.
 */
export function splitPayload(payload: Uint8Array): readonly Uint8Array[] {
  const plaintexts: Uint8Array[] = [];
  let offset = 0;
  do {
    plaintexts.push(plaintextAt(payload, offset));
    offset += maxFragmentBytes;
  } while (offset < payload.length);
  return plaintexts;
}

/**
 * A single one of them, so that a writer waiting for its peer holds no copy of the unsent rest.
 * @param offset a multiple of `maxFragmentBytes` below the length of the payload, or 0
 */
export function plaintextAt(payload: Uint8Array, offset: number): Uint8Array {
  const end = Math.min(offset + maxFragmentBytes, payload.length);
  const plaintext = Buffer.allocUnsafe(1 + end - offset);
  plaintext[0] = end < payload.length ? moreFollow : lastFragment;
  plaintext.set(payload.subarray(offset, end), 1);
  return plaintext;
}

type JoinRefusal =
  | 'no_fragment_byte'
  | 'bad_fragment_byte'
  /** Not the last, and below 16 KiB: many tiny fragments would cost more than they carry. */
  | 'fragment_too_small'
  | 'fragment_too_large'
  | 'payload_too_large'
  /** An earlier fragment was refused, or the joiner was discarded. */
  | 'closed';

type JoinResult =
  | { readonly kind: 'payload'; readonly payload: Uint8Array }
  | { readonly kind: 'more' }
  | { readonly kind: 'refused'; readonly reason: JoinRefusal };

/** Joins fragments to payloads. A class, because each agent has one: see `cipher-state.ts`. */
export class Joiner {
  readonly #maxBytes: number;
  /** Almost always undefined, because few messages are fragmented. */
  #parts: Uint8Array[] | undefined;
  #closed = false;
  /** Bytes of the unfinished payload. */
  heldBytes = 0;

  /** @param maxBytes of one joined payload: 4 MiB from agents, 16 MiB from the service (`limits.agent`) */
  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /**
   * Takes the next decrypted plaintext and keeps its memory. After a refusal it holds nothing and refuses everything,
   * because the session ends.
   */
  push(plaintext: Uint8Array): JoinResult {
    if (this.#closed) return this.#refuse('closed');
    const marker = plaintext[0];
    if (marker === undefined) return this.#refuse('no_fragment_byte');
    if (marker !== lastFragment && marker !== moreFollow) return this.#refuse('bad_fragment_byte');
    const fragment = plaintext.subarray(1);
    if (fragment.length > maxFragmentBytes) return this.#refuse('fragment_too_large');
    if (this.heldBytes + fragment.length > this.#maxBytes) return this.#refuse('payload_too_large');
    if (marker === moreFollow) {
      if (fragment.length < limits.agent.fragmentMinBytes) return this.#refuse('fragment_too_small');
      (this.#parts ??= []).push(fragment);
      this.heldBytes += fragment.length;
      return { kind: 'more' };
    }
    // A single fragment is the common case and needs no copy.
    if (this.#parts === undefined) return { kind: 'payload', payload: fragment };
    const payload = Buffer.concat([...this.#parts, fragment]);
    this.#release();
    return { kind: 'payload', payload };
  }
  /** Releases everything it holds. */
  discard(): void {
    this.#release();
    this.#closed = true;
  }
  #release(): void {
    this.#parts = undefined;
    this.heldBytes = 0;
  }
  #refuse(reason: JoinRefusal): JoinResult {
    this.discard();
    return { kind: 'refused', reason };
  }
}
