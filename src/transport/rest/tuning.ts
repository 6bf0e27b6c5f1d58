/** The numbers of the REST transport that no contract states. Those that it states are in `src/kernel/limits.ts`. */
export const tuning = {
  requestTimeoutMs: 60_000,
  headersTimeoutMs: 15_000,
  /** How long running and arriving requests may take when the service stops. */
  closeWithinMs: 5_000,
  connections: 10_000,
  /** How much of a body that is too large is read and dropped, so that its sender reads the 413. */
  drainBytes: 16 * 1024 * 1024,
  /** How long a refresh waits to see its push leave, for `pushed`. */
  pushWaitMs: 2_000,
  /** How often a waiting deploy or refresh looks at presence, besides being called back. */
  waitPollMs: 100,
  /** Sign-ins of one address, whatever their outcome; the budget of failures is far below. */
  loginsPerMinute: 600,
  loginAddresses: 10_000,
} as const;
