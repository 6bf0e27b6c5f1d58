/** The numbers of telemetry that no contract states. */
export const tuning = {
  /** One batch of writes: how long it gathers, and its bounds. */
  batchMs: 250,
  batchDocuments: 1000,
  /** Newest values that wait while the read store is away. */
  waitingNodes: 65_536,
  /** An unchanged table is written again after this time, in case the store has lost it. */
  writeAgainMs: 10 * 60_000,
  /** How often the reports of other instances are read. */
  othersEveryMs: 500,
  /** Without such a read for this long, answers say that they may be stale. */
  staleAfterMs: 5_000,
  /** How often changed resources are judged, and within which time every chain is judged again. */
  judgeEveryMs: 250,
  judgeAgainMs: 60_000,
  /** Resources judged in one turn of the event loop. */
  judgedPerTurn: 250,
  /** How often history takes the round trips of all nodes. */
  roundTripsEveryMs: 15_000,
  /** Slots of history that wait while the read store is away: an hour. */
  openSlots: 12,
  /** At most one log line about refused counters in this time. */
  refusalLogMs: 60_000,
  /** The rings that sum heartbeats of the last minute and traffic of the last five minutes. */
  recentHeartbeats: { places: 60, placeMs: 1_000 },
  recentTraffic: { places: 30, placeMs: 10_000 },
} as const;
