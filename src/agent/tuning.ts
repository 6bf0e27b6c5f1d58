/** The numbers of the reference agent that no contract states. Those that it states are in `src/kernel/limits.ts`. */
export const tuning = {
  // The control side.
  openTimeoutMs: 10_000,
  keepaliveMs: 30_000,
  keepaliveTimeoutMs: 10_000,
  /** The longest `retry_after_ms` that is heeded. */
  retryAfterMaxMs: 60 * 60_000,
  firstHeartbeatWithinMs: 2_000,
  sendQueuePayloads: 256,
  sendQueueBytes: 16 * 1024 * 1024,

  // The data side.
  connectTimeoutMs: 10_000,
  /** Endpoints of a cluster that one connection tries. */
  connectAttempts: 3,
  tcpSessionsPerListener: 16_384,
  /** Silence after one side has finished, before the connection is given up. */
  tcpHalfClosedIdleMs: 10 * 60_000,
  tcpKeepaliveMs: 60_000,
  /** How long the connections of a removed listener may go on. */
  drainMs: 10_000,
  udpSessionsPerListener: 8192,
  udpIdleMs: 60_000,
  /** Datagrams held while the session's socket connects. */
  udpPendingDatagrams: 16,
  udpSendQueueBytes: 1024 * 1024,
  rules: 16_384,
  links: 4096,
  latencySamples: 512,
} as const;
