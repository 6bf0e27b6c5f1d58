/** The numbers of the feed that the contract does not fix. */
export const tuning = {
  window: { commands: 8192, bytes: 16 * 1024 * 1024 },
  /** Names that the follower remembers: enough for a large fleet and its deleted resources. */
  names: 100_000,
  /** How far one reader reads ahead in the log. */
  ahead: { events: 128, bytes: 64 * 1024 },
  /**
   * Simultaneous reads of the log, and how many callers may wait for one, and how long. A read holds its items
   * (`limits.feed.pieceBytes`) and one command while it is decoded: at most 16 MiB, 64 MiB in total.
   */
  reads: 4,
  readsWaiting: 2_000,
  readWaitMs: 30_000,
  /** How long a caller waits for the feed to catch up with what was answered, or to start. */
  settleMs: 2_000,
  /** How many entries the dashboard shows, and how many pages are searched for them, because sign-ins are skipped. */
  recent: { entries: 10, pages: 5, pageSize: 20 },
  /** How long a read waits for the names in the read models. */
  namesWaitMs: 2_000,
} as const;
