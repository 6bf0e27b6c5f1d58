/** The numbers of the agent transport that no contract states. Those that it states are in `src/kernel/limits.ts`. */
export const tuning = {
  /** Handshakes remembered against replay. */
  replayEntries: 1_000_000,
  /** Addresses and nodes whose budgets are remembered. */
  addressBudgets: 100_000,
  nodeBudgets: 100_000,
  /** OpenSession calls of one address that wait for its budget. */
  waitingPerAddress: 16_384,
  /** Handshake CPU time that may be used at once after a quiet time. */
  handshakeBurstMs: 250,
  /** Handshakes begun before the event loop gets a turn. */
  handshakesAtOnce: 32,
  /** HTTP/2 pings of the service to agents, and how long their answer may take. */
  keepaliveMs: 60_000,
  keepaliveTimeoutMs: 20_000,
  /** A connection without any stream is closed after this time. */
  connectionIdleMs: 60_000,
  connectionMemoryMiB: 10,
  /** Interval at which the timeouts of sessions and pending sessions are checked. */
  sweepMs: 200,
  /** Small answers that wait for a peer to read; above it, nothing more is read from that peer. */
  outboxPayloads: 64,
  /** Requests of one session that wait for delivery or a command claim; above it, nothing more is read from the peer. */
  serialQueueRequests: 4,
  /** A slower answer of delivery or of the command store ends the session with DRAINING. */
  serialQueueTimeoutMs: 30_000,
  /** How long an apply report delays the payloads behind it. Its fact goes on waiting for the event store. */
  reportWaitMs: 2_000,
  /** How long a revoked session may take to read its SessionClose before the socket is cut. */
  revokedFlushMs: 100,
  /** Between the status of a revoked session and the cut, so that the network takes the status. */
  revokedLingerMs: 20,
  /** Base of the jittered `retry_after_ms` when agents are sent away. */
  drainRetryMs: 2_000,
  overloadRetryMs: 5_000,
  /** A hello this long after the predecessor's SessionClose REKEY still counts as its rekey. */
  rekeyWindowMs: 20_000,
} as const;
