/** The numbers of backups that the contract does not state. */
export const tuning = {
  /** How often an instance checks whether a backup is due, and tells the others that it makes backups. */
  lookEveryMs: 5_000,
  /** How long an instance counts as making backups without saying so again. */
  makerMs: 30_000,
  /** The lease of the instance that makes one now, and how often it is renewed. */
  leaseMs: 15_000,
  renewEveryMs: 4_000,
  /** How long after a failure an instance tries again. Another one, with another folder, may try at once. */
  retryMs: 10 * 60_000,
  /** How long one may take: a hundred times what a million events need. */
  makeWithinMs: 2 * 3_600_000,
  /** How much of the log is read in one turn of the event loop. */
  ahead: { events: 100, bytes: 128 * 1024 },
  /** The thread holds a block of the archive and the events of one command. */
  threadLimits: { maxOldGenerationSizeMb: 128, maxYoungGenerationSizeMb: 16, stackSizeMb: 4 },
} as const;
