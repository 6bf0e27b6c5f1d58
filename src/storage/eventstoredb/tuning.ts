/**
 * The numbers of the EventStoreDB adapter that no contract states. Each wait is shorter than the 10 seconds that the
 * client and its pings take. What both adapters keep is in `../bounds.ts`.
 */
const MiB = 1024 * 1024;

export const tuning = {
  /** One try of an append; the whole call answers within `bounds.appendTimeoutMs`. */
  appendTryMs: 5_000,
  /** How long an append that was certainly not written is tried again. */
  appendRetryMs: 3_000,
  retry: { firstMs: 20, maxMs: 500 },
  /**
   * Until when the server may begin to write an append, by its own clock. Above 10 s, so that clocks may differ; below
   * `outcomeWaitMs` of the commands, so that nothing is written after the search for it was given up.
   */
  appendDeadlineMs: 25_000,
  appendsWaiting: 20_000,
  /** One page of a read, from the request to its end. */
  readPageMs: 8_000,
  readPageEvents: 500,
  /** How long a page that failed at once is tried again. */
  readRetryMs: 3_000,
  /** Open reads and open subscriptions of this process. The server's connection carries 100 streams, and hangs beyond. */
  reads: 40,
  subscriptions: 40,
  /** Appends in flight of this process: one stream each on the classic path, the buffer of the one stream on the other. */
  appendsAtOnce: 16,
  /** How long a read or a subscription waits for one of those places. */
  placeWaitMs: 5_000,
  /** How long a subscription waits for its confirmation. */
  confirmMs: 8_000,
  /** Events that a subscription holds before it pauses, and when it goes on. */
  queueHigh: 2000,
  queueLow: 500,
  /** The same in bytes of JSON; it goes on below half of it. */
  queueBytesHigh: 16 * MiB,
  /** Consecutive drops as too slow, without an event in between, that a subscription survives. */
  slowTries: 5,
  /** How long a subscription that catches up gathers events before it hands them out. */
  catchUpGatherMs: 5,
  /** Events scanned per page and checkpoint of a filtered subscription. */
  searchWindow: 5000,
  /** Chunk of a fold checkpoint, and how many of them one page of a read takes. */
  foldChunkBytes: 512 * 1024,
  foldPageEvents: 8,
  /** Chunks that a search for a whole checkpoint looks through. */
  foldSearchEvents: 512,
  disposeMs: 2_000,
  /** Ping interval and ping timeout of the connection. They end a subscription whose server hangs. */
  keepaliveMs: 10_000,
  /** How long one node of a cluster is asked who the leader is. */
  gossipSeconds: 2,
} as const;
