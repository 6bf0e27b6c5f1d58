/** The numbers of the status writer that the contract does not state. */
export const tuning = {
  /** How often it checks whether something is due. */
  turnMs: 250,
  /** How long it decides before the event loop gets a turn. */
  sliceMs: 10,
  /** How often the lease is renewed or asked for. */
  leaseEveryMs: 3_000,
  /** How long it waits for the ledger to hold what it has appended. */
  foldWaitMs: 2_000,
  /** How often it looks for facts that are about to expire. */
  repeatEveryMs: 3_600_000,
  /** How long the ledger keeps deleted resources after the fact that ends their incident. */
  goneKeptMs: 10 * 60_000,
  /** Characters of a reason. */
  reasonChars: 500,
} as const;
