/** The numbers of the embedded adapter that no contract states. What both adapters keep is in `../bounds.ts`. */
export const tuning = {
  /** Operations that may wait for their group commit; more are refused as unavailable. */
  writeQueue: 20_000,
  /** Bounds of one group commit; the bytes are approximate. */
  groupOperations: 512,
  groupBytes: 4 * 1024 * 1024,
  /** About how long the operations of one group hold the event loop. */
  groupMs: 8,
  /** Approximate changes in a group that one caller fills alone, as when read models are built. */
  bulkChanges: 16_384,
  /** Entries read before the event loop gets a turn. */
  sliceEntries: 1000,
  /** Appends with expected revision `any` whose repeat is recognised. */
  anyAppends: 10_000,
  trimEveryMs: 60_000,
  /** Expired appends that one turn of the trimmer removes per stream. */
  trimAppends: 1000,
  foldChunkBytes: 1024 * 1024,
  /** Longer strings are cut in an index key and compared in the document. */
  indexStringBytes: 200,
  /** Index entries of one document in one index; only lists make more than one. */
  indexEntries: 1024,
} as const;
