/** The numbers of webhooks that the contract does not fix. */
export const tuning = {
  /** Look-ups of names at a time. */
  lookUps: 2,
  /** Pings at a time on one instance. */
  pings: 8,
  /** Items that are read at once for one webhook, and their bytes as JSON. */
  readItems: 16,
  readBytes: 1024 * 1024,
  /** How long a reader at the end of the log waits for more, and gathers what its filters leave out. */
  waitMs: 30_000,
  gatherMs: 20,
  /** Another instance takes over after the lease, and one more look. */
  leaseMs: 10_000,
  leaseEveryMs: 2_000,
  /** Leases of deleted webhooks that nobody ended go then. */
  leasePurgeMs: 24 * 60 * 60_000,
  /** How often the lag is measured. */
  measureEveryMs: 1_000,
  /** The clocks of instances differ by less. */
  clocksApartMs: 60_000,
  /** A fact that is older is written again, long before it expires; a webhook that is older has one. */
  factAgeMs: 24 * 60 * 60_000,
  /** How long a closing instance waits for the answers to what it has sent. */
  closeMs: 3_000,
  /** How long it waits after an unforeseen failure. */
  failureMs: 5_000,
  /** More deliveries than are shown are stored until they are counted again. */
  trimEvery: 16,
  walk: 500,
} as const;
