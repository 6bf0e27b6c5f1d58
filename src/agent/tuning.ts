/**
 * Numbers of the reference agent that the contract does not state. Those that it states are in `src/kernel/limits.ts`.
 */
export const tuning = {
  // The control side.
  openTimeoutMs: 10_000,
  keepaliveMs: 30_000,
  keepaliveTimeoutMs: 10_000,
  /** A longer `retry_after_ms` counts as this one. */
  retryAfterMaxMs: 60 * 60_000,
  firstHeartbeatWithinMs: 2_000,
  sendQueuePayloads: 256,
  sendQueueBytes: 16 * 1024 * 1024,

  // The data side.
  connectTimeoutMs: 10_000,
  /** Endpoints of a cluster that one connection tries. */
  connectAttempts: 3,
  tcpSessionsPerListener: 16_384,
  /** How long a half-closed connection may be silent before it is closed. */
  tcpHalfClosedIdleMs: 10 * 60_000,
  tcpKeepaliveMs: 60_000,
  /** How long the connections of a removed listener may stay open. */
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
