/** The numbers of telemetry that no contract states. */
export const tuning = {
  /** One batch of writes: how long it gathers, and its bounds. */
  batchMs: 250,
  batchDocuments: 1000,
  /** Newest values that wait while the read store is away. */
  waitingNodes: 65_536,
  /** The rings in which heartbeats of the last minute and traffic of the last five are summed. */
  recentHeartbeats: { places: 60, placeMs: 1_000 },
  recentTraffic: { places: 30, placeMs: 10_000 },
} as const;
