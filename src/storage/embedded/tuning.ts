/** Tuning numbers of the embedded adapter. The bounds that every adapter keeps are in `../bounds.ts`. */
export const tuning = {
  /** Operations that may wait for a group commit; more are refused as unavailable. */
  writeQueue: 20_000,
  /** Bounds of one group commit; the bytes are approximate. */
  groupOperations: 512,
  groupBytes: 4 * 1024 * 1024,
  /** Approximate time that the operations of one group may block the event loop. */
  groupMs: 8,
  /** Entries read before other callbacks of the event loop get a turn. */
  sliceEntries: 1000,
  /** Keys of a dropped collection that are removed at once. */
  removedKeys: 8_000,
  /** How many of the newest appends with expected revision `any` are recognised when they are repeated. */
  anyAppends: 10_000,
  trimEveryMs: 60_000,
  /** Expired appends that one run of the trimmer removes per stream. */
  trimAppends: 1000,
  /** How fast the time for expiring events may follow the wall clock, as a multiple of measured time. */
  logTimeSpeed: 2,
  foldChunkBytes: 1024 * 1024,
} as const;
