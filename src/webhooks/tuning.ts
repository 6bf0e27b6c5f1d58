/** The numbers of webhooks that the contract does not fix. */
export const tuning = {
  /** Simultaneous look-ups of names. */
  lookUps: 2,
  /** Answers such as 103 before the answer of one try. */
  interimAnswers: 16,
  /** Simultaneous pings of one instance. */
  pings: 8,
  /** Items per read of one webhook, and their bytes as JSON. */
  readItems: 16,
  readBytes: 1024 * 1024,
  /** How long a reader at the end of the log waits for more, and gathers items that its filters skip. */
  waitMs: 30_000,
  gatherMs: 20,
  /** Another instance takes over when the lease has expired, at its next check. */
  leaseMs: 10_000,
  leaseEveryMs: 2_000,
  /** When abandoned leases of deleted webhooks are removed. */
  leasePurgeMs: 24 * 60 * 60_000,
  /** How often the lag is measured. */
  measureEveryMs: 1_000,
  /** Upper bound for the difference between clocks of instances. */
  clocksApartMs: 60_000,
  /** An older fact is written again, long before it expires, so every older webhook has one. */
  factAgeMs: 24 * 60 * 60_000,
  /** How long a closing instance waits for answers. */
  closeMs: 3_000,
  /** Wait after an unexpected failure. */
  failureMs: 5_000,
  /** Old deliveries are removed after this many new ones, at most `walk` at a time. */
  trimEvery: 16,
  walk: 500,
  /** How often deliveries of webhooks that are gone are looked for. */
  removeGoneEveryMs: 60 * 60_000,
} as const;
