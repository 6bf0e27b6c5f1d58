/** The numbers of UDP ENC (`docs/data-plane.md#timers-and-bounds`), which tests shorten. Times are milliseconds. */
const SECOND = 1000;

export const encTiming = {
  /** Waits after each handshake attempt; another attempt follows each wait but the last. */
  handshakeTriesMs: [0.5 * SECOND, 1 * SECOND, 2 * SECOND, 4 * SECOND, 2.5 * SECOND],
  /** How long a handshake may wait at the listener: after that its dialler has tried again. */
  handshakeStaleMs: 0.5 * SECOND,
  /** The age at which the dialler starts a rekey. */
  rekeyAfterMs: 600 * SECOND,
  /** Datagrams sent in a session after which the dialler starts a rekey. */
  rekeyAfterDatagrams: 2 ** 30,
  rekeyRetryMs: 5 * SECOND,
  /** The age from which neither side uses a session. */
  refuseAfterMs: 900 * SECOND,
  /** How long a session still receives after its successor was taken into use. */
  overlapMs: 10 * SECOND,
  /** How long a dialler sends without an answer before it asks for one. */
  silenceMs: 5 * SECOND,
  pingEveryMs: 1 * SECOND,
  /** Unanswered pings after which the dialler starts a new handshake. */
  pings: 3,
  /** How long a listener waits for the first datagram after answering a handshake. */
  halfOpenMs: 10 * SECOND,
} as const;
