/** Tuning numbers of the MongoDB adapter. `../bounds.ts` has the bounds that every adapter enforces. */
export const tuning = {
  /** How long a call waits for a primary. An election takes longer; callers retry. */
  selectionMs: 3_000,
  connectMs: 3_000,
  /** A connection that is silent for this long while an answer is due is closed. */
  answerMs: 20_000,
  /** How long a read waits for its answer. */
  readMs: 8_000,
  /** How long a write waits until a majority has it. */
  majorityMs: 10_000,
  pingMs: 3_000,
  heartbeatMs: 2_000,
  /** Heartbeats without any report about a server after which the driver's client is reopened. */
  silentHeartbeats: 6,
  connections: 32,
  /** Documents that one command reads or writes. */
  batchDocuments: 1000,
  /** MongoDB accepts 16 MiB per document; the rest is for what this adapter adds. */
  documentBytes: 15 * 1024 * 1024,
  /** Attempts of a change that others keep overtaking, before it is unavailable. */
  attempts: 100,
  overtakenRetry: { firstMs: 1, maxMs: 50 },
} as const;

/** Options of every read: the server gives up when nobody waits for its answer any more. */
export const reading = { maxTimeMS: tuning.readMs } as const;
