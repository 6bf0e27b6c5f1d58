/**
 * Limits of the data plane that several files use or that tests shorten. Other limits are next to their use;
 * `src/kernel/limits.ts` has those that the contract states.
 */
export const relayLimits = {
  /** How long a connect to one endpoint may take, including the lookup of its name. */
  connectTimeoutMs: 10_000,
  tcpKeepaliveMs: 60_000,
  /** How long a ClientHello may take. */
  clientHelloMs: 5_000,
  /** The same where a saved policy puts RAW first. */
  clientHelloShortMs: 300,
  tlsHandshakeMs: 10_000,
  /** How long the target of a REALITY hop is watched after a handshake. */
  realityProbeMs: 5_000,
  /** Connections of a listener in the ClientHello or the TLS handshake; one more closes the oldest of them. */
  tcpUndecidedPerListener: 4096,
  udpFlowsPerListener: 8192,
  /** Silence after which a UDP flow ends. */
  udpIdleMs: 60_000,
  /** How long a connection that met an unknown key waits for its pin. */
  newPinMs: 3_000,
  /** How long the headers of a request may take. */
  httpHeadersMs: 15_000,
  httpKeepAliveMs: 60_000,
  /** How long the next hop may be silent before its answer starts. */
  httpAnswerMs: 60_000,
  /** 1xx answers of the next hop before its final answer. */
  httpInterimAnswers: 32,
  /** How long the next hop may be silent within its answer, or its client leave the answer unread. */
  httpIdleMs: 10 * 60_000,
  /** Links that are measured. */
  links: 4096,
  /** Connect times from which percentiles are computed. */
  latencySamples: 512,
} as const;
