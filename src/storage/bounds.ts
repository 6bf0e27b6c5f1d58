/** The bounds of both ports. Every adapter keeps them, so that every store takes what one of them takes. */
export const bounds = {
  /** An append answers within this time (`event-store.ts`). */
  appendTimeoutMs: 10_000,
  /** EventStoreDB's default bound of one append. */
  appendBytes: 1024 * 1024,
  /** Events of one command, which is one append; a batch of settings overrides stays far below. */
  commandEvents: 10_000,
  /** Bounds of one item of a subscription. */
  itemEvents: 1000,
  itemBytes: 8 * 1024 * 1024,
  documentIdBytes: 256,
  leaseNameBytes: 512,
  indexFields: 5,
} as const;
