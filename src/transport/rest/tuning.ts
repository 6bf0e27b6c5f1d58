/** The numbers of the REST transport that no contract states. Those that it states are in `src/kernel/limits.ts`. */
export const tuning = {
  requestTimeoutMs: 60_000,
  headersTimeoutMs: 15_000,
  /** How long open requests may take once the service stops. */
  closeWithinMs: 5_000,
  connections: 10_000,
  /** How much of a too large body is read and dropped, so that its sender sees the 413. */
  drainBytes: 16 * 1024 * 1024,
  /** How long a refresh waits for its push, to answer `pushed`. */
  pushWaitMs: 2_000,
  /** How often a waiting deploy or refresh reads presence, beside being called back. */
  waitPollMs: 100,
  /** How often a snapshot is looked for while the fold and the read models do not agree about its node. */
  foldPollMs: 20,
  /** Sign-ins from one address, successful or not; far above the budget of failures. */
  loginsPerMinute: 600,
  loginAddresses: 10_000,
} as const;
