/** The numbers of the read side that the contract does not fix. */
export const tuning = {
  /** How long the instance counts as up to date after its subscription to the fleet is dropped. */
  dropGraceMs: 5_000,
  /** After replaying this many events, a start writes a checkpoint: they take a quarter of a second. */
  replayWorthCheckpoint: 2_000,
  /** How long the counts of an unchanged fleet are cached. */
  countsReuseMs: 1_000,
  /** Events whose needs are collected in one turn of the event loop. */
  eventsPerSlice: 500,
  /** Nodes whose live listeners are cached. */
  rememberedNodes: 65_536,
  /** Events whose documents are written together. */
  batchEvents: 1000,
  parkedEntities: 10_000,
  /** How often expired documents are removed, and how many at once. */
  expiryEveryMs: 60_000,
  expiredDocuments: 1000,
  /** How late a checkpoint may be. Events after it are folded again, which changes nothing. */
  checkpointEveryMs: 250,
  closeWithinMs: 2_000,
  /** Callers that may wait for the read models; others are answered at once as lagging. */
  waiters: 20_000,
  /** How often the end of the log is read while a caller waits for a position that no read model uses. */
  probeEveryMs: 50,
  probeTimeoutMs: 2_000,
  /** Names kept per resource, for audit entries of its past. */
  namesPerResource: 1000,
  deploymentsListed: 10_000,
  /** Documents that a scan loads at once. */
  scanDocuments: 1000,
  /** For one page of the audit: concurrent reads of the log, and the largest gap in events within one read. */
  auditReads: 8,
  auditReadGap: 16,
  /** Events that a page of the audit holds at a time. */
  auditBite: 500,
  /** Entries about one resource that a revert reads at once. */
  auditTrailPage: 500,
  errorChars: 500,
  /** How often an instance checks whether a rebuild has moved the read models, and announces where it reads them. */
  layoutPollMs: 2_000,
  layoutLeaseMs: 10_000,
  /** How long the replaced read models are still followed, for callers that wait for them. */
  layoutLingerMs: 3_000,
  /** Lease of a rebuild: a killed one blocks the next one for this long. */
  rebuildLeaseMs: 10_000,
  /** How long a rebuild waits for all instances to read the new collections before it keeps the old ones. */
  rebuildReadersMs: 30_000,
  /** Documents that a comparison loads at once; differences that it lists. */
  compareDocuments: 1000,
  compareShown: 100,
  compareRounds: 5,
  /** How long a comparison waits until its fold reaches the end of the log. */
  compareGiveUpMs: 60_000,
} as const;
