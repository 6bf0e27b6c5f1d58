/**
 * Numbers of the reference agent that the contract does not state. Those that it states are in `src/kernel/limits.ts`.
 */
export const tuning = {
  // The control side.
  openTimeoutMs: 10_000,
  /** For the whole handshake of REALITY. */
  realityTimeoutMs: 8_000,
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
  /** Connections in the ClientHello or the TLS handshake; more end the oldest of them. */
  tcpUndecidedPerListener: 4096,
  /** Of a ClientHello with the headers of its records. */
  clientHelloBytes: 16 * 1024,
  /** How long a ClientHello may take. */
  clientHelloMs: 5_000,
  /** The same where a saved policy puts RAW first. */
  clientHelloShortMs: 300,
  tlsHandshakeMs: 10_000,
  /** How long a connection waits for the pin of a key that it met, and how many wait. */
  newPinMs: 3_000,
  newPinWaiters: 1024,
  httpHeaderBytes: 16 * 1024,
  /** How long the headers of a request may take. */
  httpHeadersMs: 15_000,
  httpKeepAliveMs: 60_000,
  /** Silence of the next hop before its answer begins. */
  httpAnswerMs: 60_000,
  /** Silence of the next hop within its answer. */
  httpIdleMs: 10 * 60_000,
  /** Requests that one connection may have under way. */
  httpRequestsPerConnection: 32,
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
