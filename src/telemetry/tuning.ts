/** The numbers of telemetry that no contract states. */
export const tuning = {
  /** One batch of writes: how long it gathers, and its bounds. */
  batchMs: 250,
  batchDocuments: 1000,
  /** Newest values that wait while the read store is away. */
  waitingNodes: 65_536,
} as const;
