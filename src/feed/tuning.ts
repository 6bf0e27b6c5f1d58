/** The numbers of the feed that the contract does not fix. */
export const tuning = {
  window: { commands: 8192, bytes: 16 * 1024 * 1024 },
  /** Names that the follower knows: those of a large fleet, and of what has been deleted since. */
  names: 100_000,
  /** What one reader reads of the log in one turn, in which all that read may have theirs. */
  ahead: { events: 128, bytes: 64 * 1024 },
  /**
   * Reads of the log at once, and callers that may wait for one, and how long. A read holds its items (`limits.feed.pieceBytes`),
   * the same as an answer, and one command while it is decoded: 16 MiB at most, 64 MiB over all.
   */
  reads: 4,
  readsWaiting: 2_000,
  readWaitMs: 30_000,
  /** How long a caller waits until the feed holds what was answered before, or begins to follow the log. */
  settleMs: 2_000,
  /** How many entries of commands are kept for the dashboard, and the pages in which they are looked for once, because sign-ins are left out. */
  recent: { entries: 10, pages: 5, pageSize: 20 },
  /** How long a read waits for the read models, which know the names. */
  namesWaitMs: 2_000,
} as const;
