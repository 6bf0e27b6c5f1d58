/** The numbers of telemetry that no contract states. */
export const tuning = {
  /** One batch of writes: how long it gathers, and its bounds. */
  batchMs: 250,
  batchDocuments: 1000,
  /** Newest values that wait while the read store is away. */
  waitingNodes: 65_536,
  /** After this long a table is written again although it has not changed. */
  writeAgainMs: 10 * 60_000,
  /** How often what other instances wrote is read. */
  othersEveryMs: 500,
  /** After this long without it, answers say that they may be stale. */
  staleAfterMs: 5_000,
  /** How long what is told waits to be judged, and after which time every chain is judged again. */
  judgeEveryMs: 250,
  judgeAgainMs: 60_000,
  /** Nodes or chains that are judged in one turn of the event loop. */
  judgedPerTurn: 250,
  /** How often the log names a node whose counters are refused. */
  refusedToldMs: 60_000,
  /** The rings in which heartbeats of the last minute and traffic of the last five are summed. */
  recentHeartbeats: { places: 60, placeMs: 1_000 },
  recentTraffic: { places: 30, placeMs: 10_000 },
} as const;
