/**
 * An established session of UDP ENC, as either side holds it: seals and opens datagrams, and refuses repeated and old
 * ones. The handshake and the switch to a new session are in `dialler.ts` and `listener.ts`. Implements
 * `docs/data-plane.md#inside-a-session`.
 */
import { nk, type HandshakeParty, type NoiseSession } from '../noise/handshake.js';
import { transportPacket } from './packets.js';
import { createReplayWindow } from './replay-window.js';
import { encTiming } from './timing.js';

/** The first byte of a plaintext. */
export const contentKind = { datagram: 0, ping: 1, pong: 2, rekey: 3, rekeyAnswer: 4 } as const;

/** The largest datagram inside: the capacity of a UDP packet over IPv4, less the 30 bytes of header, kind and tag. */
export const datagramMaxBytes = 65_507 - 30;

const prologue = Buffer.from('svc-enc-v1', 'latin1');

/** What one side knows, completed for the handshake. */
export function encParty(own: Pick<HandshakeParty, 'localStatic' | 'remoteStatic' | 'ephemeral'>): HandshakeParty {
  return { ...own, pattern: nk, prologue };
}

export interface Opened {
  readonly kind: number;
  readonly content: Buffer;
  /** No later datagram arrived before it. */
  readonly isNewest: boolean;
}

export interface EncSession {
  /** The index by which the other side addresses this session. */
  readonly ownIndex: number;
  readonly startedAt: number;
  readonly tooOld: (now: number) => boolean;
  /** Only diallers rekey. */
  readonly isDueForRekey: (now: number) => boolean;
  /** A packet; undefined when the session is too old. */
  seal(kind: number, content: Uint8Array, now: number): Buffer | undefined;
  /** Undefined for a packet that is not authentic, repeated, or too old. */
  open(counter: number, ciphertext: Buffer, now: number): Opened | undefined;
  /** Overwrites the keys. */
  wipe(): void;
}

export function createEncSession(
  noise: Pick<NoiseSession, 'send' | 'receive'>,
  indexes: { readonly own: number; readonly peer: number },
  now: number,
): EncSession {
  const { send, receive } = noise;
  const window = createReplayWindow();
  const tooOld = (at: number): boolean => at - now >= encTiming.refuseAfterMs;

  return {
    ownIndex: indexes.own,
    startedAt: now,
    tooOld,
    isDueForRekey: (at) => at - now >= encTiming.rekeyAfterMs || send.nextSequence >= encTiming.rekeyAfterDatagrams,
    seal(kind, content, at) {
      if (tooOld(at)) return undefined;
      const counter = send.nextSequence;
      const plaintext = Buffer.allocUnsafe(1 + content.length);
      plaintext[0] = kind;
      plaintext.set(content, 1);
      const sealed = send.encrypt(counter, plaintext);
      return sealed.ok ? transportPacket(indexes.peer, counter, sealed.value) : undefined;
    },
    open(counter, ciphertext, at) {
      if (tooOld(at) || !window.accepts(counter)) return undefined;
      const opened = receive.decryptAt(counter, ciphertext);
      if (!opened.ok) return undefined;
      const isNewest = window.note(counter);
      const [kind] = opened.value;
      if (kind === undefined) return undefined;
      return {
        kind,
        content: Buffer.from(opened.value.buffer, opened.value.byteOffset + 1, opened.value.length - 1),
        isNewest,
      };
    },
    wipe() {
      send.wipe();
      receive.wipe();
    },
  };
}
