/** The numbers of the rollout runner that the contract does not state. */
export const tuning = {
  /** How often waves are judged. */
  turnMs: 500,
  /** How long it looks at nodes before the event loop gets a turn. */
  sliceMs: 10,
  /** How often the lease is renewed or asked for, and the time of the last run recorded. */
  leaseEveryMs: 3_000,
  /** The contract's lease. */
  leaseMs: 10_000,
  /** The longest grace after a start or a take-over. */
  graceMs: 30_000,
} as const;
