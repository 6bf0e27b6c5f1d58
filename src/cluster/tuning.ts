/** The numbers of the cluster room that no contract states. */
export const tuning = {
  instanceLeaseMs: 10_000,
  instanceLeaseRenewMs: 3_000,
  /** The lease of an instance that ended this long ago is deleted. */
  instancePurgeAfterMs: 24 * 60 * 60_000,
  /** How often the other instances are asked whether they have closed a revoked node's sessions, or refuse ended tokens. */
  pollMs: 25,
  /** How long a heartbeat's answer waits for the claim of commands; what is claimed later goes with the next one. */
  claimWaitMs: 500,
  /** Commands read at once. */
  claimDocuments: 1000,
} as const;
