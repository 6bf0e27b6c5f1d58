/** The numbers of UDP ENC (`docs/data-plane.md#timers-and-bounds`). Times are milliseconds. */
const SECOND = 1000;

export interface EncTiming {
  /** Waits after each try of a handshake: one more try after each but the last. */
  readonly handshakeTriesMs: readonly number[];
  /** How long a handshake may wait at the listener: by then its dialler has tried again. */
  readonly handshakeStaleMs: number;
  /** Age at which the dialler begins a rekey. */
  readonly rekeyAfterMs: number;
  readonly rekeyRetryMs: number;
  /** Age from which nobody uses a session any more. */
  readonly refuseAfterMs: number;
  /** How long a session is heard after its successor was taken. */
  readonly overlapMs: number;
  /** How long a dialler sends without an answer before it asks for one. */
  readonly silenceMs: number;
  readonly pingEveryMs: number;
  /** Pings without an answer after which the dialler shakes hands anew. */
  readonly pings: number;
  /** How long a listener waits for the first datagram of a handshake that it answered. */
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

/** Datagrams sent in a session after which the dialler begins a rekey. */
export const rekeyAfterDatagrams = 2 ** 30;
