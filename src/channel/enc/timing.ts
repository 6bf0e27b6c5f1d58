/** The numbers of UDP ENC (`docs/data-plane.md#timers-and-bounds`). Times are milliseconds. */
const SECOND = 1000;

export interface EncTiming {
  /** Waits after each handshake attempt; another attempt follows each wait but the last. */
  readonly handshakeTriesMs: readonly number[];
  /** How long a handshake may wait at the listener: after that its dialler has tried again. */
  readonly handshakeStaleMs: number;
  /** The age at which the dialler starts a rekey. */
  readonly rekeyAfterMs: number;
  readonly rekeyRetryMs: number;
  /** The age from which neither side uses a session. */
  readonly refuseAfterMs: number;
  /** How long a session still receives after its successor was taken into use. */
  readonly overlapMs: number;
  /** How long a dialler sends without an answer before it asks for one. */
  readonly silenceMs: number;
  readonly pingEveryMs: number;
  /** Unanswered pings after which the dialler starts a new handshake. */
  readonly pings: number;
  /** How long a listener waits for the first datagram after answering a handshake. */
  readonly halfOpenMs: number;
}

export const encTiming: EncTiming = {
  handshakeTriesMs: [0.5 * SECOND, 1 * SECOND, 2 * SECOND, 4 * SECOND, 2.5 * SECOND],
  handshakeStaleMs: 0.5 * SECOND,
  rekeyAfterMs: 600 * SECOND,
  rekeyRetryMs: 5 * SECOND,
  refuseAfterMs: 900 * SECOND,
  overlapMs: 10 * SECOND,
  silenceMs: 5 * SECOND,
  pingEveryMs: 1 * SECOND,
  pings: 3,
  halfOpenMs: 10 * SECOND,
};

/** Datagrams sent in a session after which the dialler starts a rekey. */
export const rekeyAfterDatagrams = 2 ** 30;
