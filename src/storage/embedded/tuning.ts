/** Tuning numbers of the embedded adapter. The bounds that every adapter keeps are in `../bounds.ts`. */
export const tuning = {
  /** Operations that may wait for a group commit; more are refused as unavailable. */
  writeQueue: 20_000,
  /** Bounds of one group commit; the bytes are approximate. */
  groupOperations: 512,
  groupBytes: 4 * 1024 * 1024,
  /** About how long the operations of one group may block the event loop. */
  groupMs: 8,
  /** Entries read before yielding to the event loop. */
  sliceEntries: 1000,
  /** Keys of a dropped collection removed per commit. */
  removedKeys: 8_000,
  /** How many recent appends with expected revision `any` are remembered to recognise repeats. */
  anyAppends: 10_000,
  trimEveryMs: 60_000,
  /** Expired appends removed per stream in one run of the trimmer. */
  trimAppends: 1000,
  /** How fast the time for expiring events may follow the wall clock, as a multiple of measured time. */
  logTimeSpeed: 2,
  foldChunkBytes: 1024 * 1024,
} as const;
