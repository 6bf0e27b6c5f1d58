/**
 * Numbers of the agent transport that the contract does not state. Those that it states are in `src/kernel/limits.ts`.
 */
export const tuning = {
  /** Handshakes remembered against replay. */
  replayEntries: 1_000_000,
  /** Addresses and nodes whose budgets are remembered. */
  addressBudgets: 100_000,
  nodeBudgets: 100_000,
  /** Pairs of address and node that had a session and are remembered. */
  provenPairs: 100_000,
  /** Failures that one such pair may have while its address is over its budget: burst, and refill per second. */
  provenPairBurst: 5,
  provenPairFailuresPerSecond: 0.2,
  /** Nodes whose budget of reading is remembered; more than can be connected. */
  readBudgets: 50_000,
  /** OpenSession calls of one address that may wait for its budget. */
  waitingPerAddress: 16_384,
  /** Processor time that handshakes may use at once after a quiet period. */
  handshakeBurstMs: 250,
  /** Handshakes that run at the same time. */
  handshakesAtOnce: 32,
  /** Interval of the HTTP/2 pings to agents, and how long their answer may take. */
  keepaliveMs: 60_000,
  keepaliveTimeoutMs: 20_000,
  connectionMemoryMiB: 10,
  /** Headers of a call; agents send about ten. */
  headerPairs: 64,
  /**
   * What a connection without a session may hold at two consecutive checks: bytes received since its last request was
   * complete, plus 512 for each piece of an unfinished request, and the header table that its peer fills.
   */
  unansweredBytes: 4 * 1024,
  pieceBytes: 512,
  headerTableBytes: 1024,
  /** Unfinished requests at consecutive checks, added up: one for 2 s, four for half a second. */
  unfinishedSum: 10,
  /** Interval at which the timeouts of sessions and pending sessions are checked. */
  sweepMs: 200,
  /** Answers that may wait for a peer to read; at this number the service stops reading from that peer. */
  outboxPayloads: 64,
  /** Requests of one session that may wait for delivery or a command claim; at this number reading stops. */
  serialQueueRequests: 4,
  /** A slower answer of delivery or of the command store ends the session with DRAINING. */
  serialQueueTimeoutMs: 30_000,
  /** Frames of a session that may wait for the end of a fan-out, and the size of one: a report on a snapshot, a heartbeat. */
  heldFrames: 8,
  heldFrameBytes: 4 * 1024,
  /** How long an apply report delays the requests behind it; recording it may take longer. */
  reportWaitMs: 2_000,
  /** How long after its last answer a connection is closed that was ended for its faulty calls. */
  endedConnectionMs: 100,
  /** How long a revoked session may take to read its SessionClose before its socket is closed. */
  revokedFlushMs: 100,
  /** Time between sending the status of a revoked session and closing its socket, so that the status is delivered. */
  revokedLingerMs: 20,
  /** Base of the jittered `retry_after_ms` of DRAINING and of OVERLOADED. */
  drainRetryMs: 2_000,
  overloadRetryMs: 5_000,
  /** A hello within this time after the predecessor's SessionClose REKEY counts as its rekey. */
  rekeyWindowMs: 20_000,
} as const;
