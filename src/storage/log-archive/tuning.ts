/** Tuning numbers of log archives. */
export const tuning = {
  /** A block of lines is closed, with its checksum, at either bound. One block is held in memory at a time. */
  blockLines: 1000,
  blockBytes: 1024 * 1024,
  /** The longest line that is read: a last-good snapshot of the largest size, sealed, in base64. */
  lineBytes: 32 * 1024 * 1024,
  /** Problems that are listed; all are counted. */
  problems: 100,
  documentsAtOnce: 200,
  /** An export, an import or a check ends when a store is away for this long. */
  giveUpMs: 60_000,
} as const;
