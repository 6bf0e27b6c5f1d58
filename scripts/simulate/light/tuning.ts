/** Numbers of the light agents that no document states. What they share with the reference agent is in its tuning. */
export const tuning = {
  /** Unsent bytes at which a connection is given up. */
  sendQueueBytes: 4 * 1024 * 1024,
  /** How many bytes the service may send ahead: the default of HTTP/2. */
  windowBytes: 65_535,
  /** The same for an agent that reads slowly. */
  slowWindowBytes: 1024,
  /** How many agents of one process connect at the same time. */
  connectingAtOnce: 128,
  /** Different tables that changing heartbeats go through. */
  changingTables: 16,
  /** Measured times that a fleet keeps for its owner. */
  keptTimes: 200_000,
} as const;
