/** The numbers of the read side that no contract states. */
export const tuning = {
  batchEvents: 1000,
  /** Events that are folded and not written yet, beside those being written, before catching up waits for the write. */
  backlogEvents: 1_000,
  /** How long a backlog waits for more events when none come. */
  backlogMs: 100,
  /** Documents of one read model that are kept in memory while it catches up with the log. */
  keptDocuments: 20_000,
  parkedEntities: 10_000,
  tombstonePurgeEveryMs: 10 * 60_000,
  /** How late a checkpoint may be written. What lies behind it is folded again, which changes nothing. */
  checkpointEveryMs: 250,
  closeWithinMs: 2_000,
  /** Commands and queries that wait until the read models have followed; more are answered at once as lagging. */
  waiters: 20_000,
  /** How often the log is asked whether a position is passed that no read model uses, while somebody waits for it. */
  probeEveryMs: 50,
  probeTimeoutMs: 2_000,
  /** Former names of one resource that audit entries can still be shown with. */
  namesPerResource: 1000,
  deploymentsListed: 10_000,
  /** Documents that one step of a scan loads. */
  scanDocuments: 1000,
  /** Reads of the log that one page of the audit makes at once, and the gap in events that one read spans. */
  auditReads: 8,
  auditReadGap: 16,
  errorChars: 500,
  /** How often an instance checks whether a rebuild has moved the read models, and announces where it reads them. */
  layoutPollMs: 2_000,
  layoutLeaseMs: 10_000,
  /** How long the replaced read models are still followed, for callers that wait on them. */
  layoutLingerMs: 3_000,
  /** The lease that allows one rebuild at a time; it ends this long after a rebuild is killed. */
  rebuildLeaseMs: 10_000,
  /** How long a rebuild waits for all instances to read the new place before it leaves the old one in use. */
  rebuildReadersMs: 30_000,
  /** Documents that a comparison loads at once, and differences that it lists. */
  compareDocuments: 1000,
  compareShown: 100,
  compareRounds: 5,
  /** How long a comparison waits for its own fold to reach the end of the log. */
  compareGiveUpMs: 60_000,
} as const;
