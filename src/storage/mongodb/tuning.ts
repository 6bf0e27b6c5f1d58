/** The numbers of the MongoDB adapter that no contract states. What both adapters keep is in `../bounds.ts`. */
export const tuning = {
  /** How long a call waits for a primary. An election takes longer; callers try again. */
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
  /** Heartbeats during which the driver reports nothing about a server before its client is opened anew. */
  silentHeartbeats: 6,
  connections: 32,
  /** Documents that one command reads or writes. */
  batchDocuments: 1000,
  /** MongoDB takes documents of 16 MiB in all; the rest is for what this adapter adds. */
  documentBytes: 15 * 1024 * 1024,
  /** A change that others keep overtaking is given up as unavailable after this many tries. */
  attempts: 100,
  overtakenRetry: { firstMs: 1, maxMs: 50 },
} as const;
