/** The numbers of delivery that no contract states. */
const MiB = 1024 * 1024;

export const tuning = {
  /** Nodes compiled and offered, and bytes encoded, before the event loop gets a turn. */
  sliceNodes: 32,
  /** Changed nodes that are served in the same turn. */
  atOnceNodes: 4,
  sliceBytes: 1 * MiB,
  /** Apply reports that are worked on before the event loop gets a turn. */
  sliceReports: 32,
  /** How long a fan-out may hold them up: longer than one of all nodes takes, shorter than any node's presence lease. */
  reportTurnMs: 2_000,
  /** Encoded snapshots held in memory, sealed; the others are compiled again on demand. */
  cacheBytes: 256 * MiB,
  /** Snapshots of earlier generations that are kept as they were answered; they hold no secret. */
  earlierEntries: 256,
  earlierBytes: 16 * MiB,
  /** Nodes whose checksum, or whose apply reports on rejected snapshots, are remembered. */
  rememberedNodes: 65_536,
  /** Applied snapshots on their way to the read store. */
  lastGoodBatchMs: 250,
  lastGoodBatchEntries: 256,
  lastGoodBatchBytes: 4 * MiB,
  lastGoodWaitingBytes: 64 * MiB,
  /** How long a ConfigRequest waits for the log and the read store before the session is drained. */
  requestWaitMs: 5_000,
  /** How often rejected generations that are due are offered again: the contract bounds them by the second. */
  retryTickMs: 1_000,
  /** Base of the jittered `retry_after_ms` of a drained session. */
  drainRetryMs: 2_000,
  /** How often, per node, one conflict of versions is written as a fact. */
  versionConflictEveryMs: 60_000,
} as const;
