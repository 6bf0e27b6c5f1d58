/**
 * Payloads larger than one Noise message: the sender splits them into fragments, the receiver joins them within limits.
 * Pure. Encryption is in `cipher-state.ts`; deadlines and the bound over all sessions are the owner's, which reads
 * `heldBytes` and `unfinishedSince`.
 * Implements `docs/contract/agent-protocol.md#control`: plaintext = 1 byte (0x00 last, 0x01 more follow) + fragment.
 */
import { limits } from '../kernel/limits.js';
import { maxPlaintextBytes } from './failure.js';

const lastFragment = 0x00;
const moreFollow = 0x01;

/** What one plaintext carries besides its fragment byte. @internal exported for tests */
export const maxFragmentBytes = maxPlaintextBytes - 1;

/**
 * Splits a payload into plaintexts that are ready to encrypt; every fragment but the last has the maximum length.
 * Sessions may share the plaintexts, because encrypting does not change them. An empty payload is one empty fragment.
 */
export function splitPayload(payload: Uint8Array): readonly Uint8Array[] {
  return [...fragmentsOf(payload)];
}

/** The same, one at a time: a writer that waits for its peer holds no copy of the unsent rest. */
export function* fragmentsOf(payload: Uint8Array): Generator<Uint8Array, void, void> {
  let offset = 0;
  do {
    const end = Math.min(offset + maxFragmentBytes, payload.length);
    const plaintext = Buffer.allocUnsafe(1 + end - offset);
    plaintext[0] = end < payload.length ? moreFollow : lastFragment;
    plaintext.set(payload.subarray(offset, end), 1);
    offset = end;
    yield plaintext;
  } while (offset < payload.length);
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

interface Joiner {
  /**
   * Takes the next decrypted plaintext and keeps its memory. `nowMs` comes from any clock that does not go back.
   * After a refusal it holds nothing and refuses everything: the session ends.
   */
  push(plaintext: Uint8Array, nowMs: number): JoinResult;
  /** Bytes of the unfinished payload. */
  readonly heldBytes: number;
  /** When the first fragment of the unfinished payload arrived, by the clock of `push`; undefined without one. */
  readonly unfinishedSince: number | undefined;
  /** Releases everything it holds. */
  discard(): void;
}

/** @param maxBytes of one joined payload: 4 MiB from agents, 16 MiB from the service (`limits.agent`) */
export function createJoiner(maxBytes: number): Joiner {
  let parts: Uint8Array[] = [];
  let heldBytes = 0;
  let unfinishedSince: number | undefined;
  let closed = false;

  const release = (): void => {
    parts = [];
    heldBytes = 0;
    unfinishedSince = undefined;
  };
  const refuse = (reason: JoinRefusal): JoinResult => {
    release();
    closed = true;
    return { kind: 'refused', reason };
  };

  return {
    get heldBytes() {
      return heldBytes;
    },
    get unfinishedSince() {
      return unfinishedSince;
    },
    push(plaintext, nowMs) {
      if (closed) return refuse('closed');
      const marker = plaintext[0];
      if (marker === undefined) return refuse('no_fragment_byte');
      if (marker !== lastFragment && marker !== moreFollow) return refuse('bad_fragment_byte');
      const fragment = plaintext.subarray(1);
      if (fragment.length > maxFragmentBytes) return refuse('fragment_too_large');
      if (heldBytes + fragment.length > maxBytes) return refuse('payload_too_large');
      if (marker === moreFollow) {
        if (fragment.length < limits.agent.fragmentMinBytes) return refuse('fragment_too_small');
        parts.push(fragment);
        heldBytes += fragment.length;
        unfinishedSince ??= nowMs;
        return { kind: 'more' };
      }
      // A single fragment is the common case and needs no copy.
      const payload = parts.length === 0 ? fragment : Buffer.concat([...parts, fragment]);
      release();
      return { kind: 'payload', payload };
    },
    discard() {
      release();
      closed = true;
    },
  };
}
