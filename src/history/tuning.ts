/** The numbers of the history that no contract states. */
export const tuning = {
  /** Events go to the worker in parts of about so many characters, of which so many may be on their way. */
  partChars: 128 * 1024,
  partsOnTheWay: 4,
  /** A checkpoint is loaded only if it can save reading more events than this. */
  checkpointWorthEvents: 5_000,
} as const;
