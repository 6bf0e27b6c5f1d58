/**
 * Limits of the data plane that several files keep to, or that tests shorten. The others stand beside their use, and those
 * that the contract states are in `src/kernel/limits.ts`.
 */
export const relayLimits = {
  /** How long a connect to one endpoint may take, and the lookup of its name. */
  connectTimeoutMs: 10_000,
  tcpKeepaliveMs: 60_000,
  /** How long a ClientHello may take. */
  clientHelloMs: 5_000,
  /** The same where a saved policy puts RAW first. */
  clientHelloShortMs: 300,
  tlsHandshakeMs: 10_000,
  /** How long the target of a REALITY hop is watched after a handshake. */
  realityProbeMs: 5_000,
  /** Connections of a listener in the ClientHello or the TLS handshake; one more ends the oldest of them. */
  tcpUndecidedPerListener: 4096,
  /** How long a connection that met an unknown key waits for its pin. */
  newPinMs: 3_000,
  /** How long the headers of a request may take. */
  httpHeadersMs: 15_000,
  httpKeepAliveMs: 60_000,
  /** Silence of the next hop before its answer begins. */
  httpAnswerMs: 60_000,
  /** Answers 1xx of the next hop before its answer. */
  httpInterimAnswers: 32,
  /** Silence of the next hop within its answer. */
  httpIdleMs: 10 * 60_000,
  /** Links that are measured. */
  links: 4096,
  /** Connect times that a percentile is taken of. */
  latencySamples: 512,
} as const;
