/** The numbers of telemetry that no contract states. */
const MiB = 1024 * 1024;

export const tuning = {
  /** One batch of writes: how long it gathers, and its bounds. */
  batchMs: 250,
  batchDocuments: 1000,
  batchBytes: 16 * MiB,
  /** Newest values that wait while the read store is away. */
  waitingNodes: 65_536,
  waitingBytes: 256 * MiB,
  /** A lease that was written this recently is not written again with the same content; at most a tenth of its time. */
  freshLeaseMs: 1_000,
  releaseTimeoutMs: 2_000,
  /** Presence that ended this long ago is deleted; `last_seen_at` stays. */
  presencePurgeAfterMs: 24 * 60 * 60_000,
  presencePurgeEveryMs: 10 * 60_000,
} as const;
