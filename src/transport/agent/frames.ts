/**
 * The frames of a Control stream. Reads and writes `SecureFrame`, and turns the frames of one session into messages:
 * checks session id, size, sequence, tag and fragments. Parsing is strict: bytes that an encoder would not write are
 * refused. `session.ts` decides what a message means. Implements frames and fragments of
 * `docs/contract/agent-protocol.md#control`, and `docs/contract/wire.md#session`.
 */
import { limits } from '../../kernel/limits.js';
import type { CipherState } from '../../channel/noise/cipher-state.js';
import { Joiner } from '../../channel/noise/fragmenter.js';
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

export type InboundFailure =
  | 'malformed_frame'
  | 'foreign_session'
  | 'ciphertext_too_large'
  /** Wrong sequence, a ciphertext too short for a tag, or a tag that does not verify. */
  | 'not_authentic'
  | 'bad_fragment'
  | 'payload_too_large';

export type Inbound =
  | { readonly kind: 'payload'; readonly bytes: Uint8Array }
  | { readonly kind: 'fragment' }
  | { readonly kind: 'refused_frame'; readonly failure: InboundFailure };

/** A class, because each agent has one: see `src/channel/noise/cipher-state.ts`. */
export class InboundFrames {
  readonly #receive: CipherState;
  readonly #sessionId: Uint8Array;
  readonly #joiner = new Joiner(limits.agent.joinedInBytes);
  /** A frame has been decrypted, so the sender is the agent. */
  proven = false;

  constructor(receive: CipherState, sessionId: Uint8Array) {
    this.#receive = receive;
    this.#sessionId = sessionId;
  }

  /** Bytes held of an unfinished message. */
  get heldBytes(): number {
    return this.#joiner.heldBytes;
  }
  /** One gRPC message. */
  take(bytes: Uint8Array): Inbound {
    const frame = decodeFrame(bytes);
    return frame === undefined ? refuse('malformed_frame') : this.takeFrame(frame);
  }
  /** The same for a frame that is already decoded. */
  takeFrame(frame: Frame): Inbound {
    if (frame.sessionId.length > 0 && Buffer.compare(this.#sessionId, frame.sessionId) !== 0) {
      return refuse('foreign_session');
    }
    if (frame.ciphertext.length > limits.agent.ciphertextBytes) return refuse('ciphertext_too_large');
    const opened = this.#receive.decrypt(frame.sequence, frame.ciphertext);
    if (!opened.ok) return refuse('not_authentic');
    this.proven = true;
    const joined = this.#joiner.push(opened.value);
    switch (joined.kind) {
      case 'payload':
        return { kind: 'payload', bytes: joined.payload };
      case 'more':
        return { kind: 'fragment' };
      case 'refused':
        return refuse(joined.reason === 'payload_too_large' ? 'payload_too_large' : 'bad_fragment');
    }
  }
  /** Wipes the key and frees the unfinished message. */
  discard(): void {
    this.#receive.wipe();
    this.#joiner.discard();
  }
}

const refuse = (failure: InboundFailure): Inbound => ({ kind: 'refused_frame', failure });
