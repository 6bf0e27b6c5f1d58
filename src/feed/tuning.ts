/** The numbers of the feed that the contract does not fix. */
export const tuning = {
  window: { commands: 8192, bytes: 16 * 1024 * 1024 },
  /** Names that the follower remembers, so that most commands need no query for theirs. */
  names: 20_000,
  /** Commands that one read of the log looks at, and how many such reads run at once. */
  commandsOfRead: 500,
  reads: 8,
  readWaitMs: 10_000,
  /** How long a caller waits until the feed holds what was answered before, or begins to follow the log. */
  settleMs: 2_000,
  /** How long a read waits for the read models, which know the names. */
  namesWaitMs: 2_000,
} as const;
