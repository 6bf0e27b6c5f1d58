/**
 * Tuning numbers of the EventStoreDB adapter. Each wait is shorter than the 10 seconds that the client and its pings
 * take. `../bounds.ts` has the bounds that every adapter enforces.
 */
import { bounds } from '../bounds.js';

const MiB = 1024 * 1024;

const standard = {
  /** One append with all its attempts, and one attempt. */
  appendMs: bounds.appendTimeoutMs as number,
  appendTryMs: 5_000,
  /** How long an append that was certainly not written is retried. */
  appendRetryMs: 3_000,
  retry: { firstMs: 20, maxMs: 500 },
  appendsWaiting: 20_000,
  /** One page of a read, from the request to its end. */
  readPageMs: 8_000,
  readPageEvents: 500,
  /** How long a failing page is retried. */
  readRetryMs: 3_000,
  /** The same for a ping, which runs every second: long enough to move to another leader. */
  pingRetryMs: 500,
  /** Open reads and subscriptions of this process. A connection carries 100 streams; further calls hang. */
  reads: 40,
  subscriptions: 40,
  /** Appends in flight in this process, one stream each. */
  appendsAtOnce: 16,
  /** How long a call waits for a free slot. */
  placeWaitMs: 5_000,
  /** How long a subscription waits for its confirmation. */
  confirmMs: 8_000,
  /** Queued events at which a subscription pauses, and at which it resumes. */
  queueHigh: 2000,
  queueLow: 500,
  /** Queued bytes of JSON at which a subscription pauses; it resumes below half of that. */
  queueBytesHigh: 16 * MiB,
  /** Consecutive drops without an event in between after which a subscription ends with an error. */
  slowTries: 5,
  /** How often the heads of the streams are read beside a subscription that receives nothing. */
  headEveryMs: 3_000,
  /** How long a subscription may be behind such a head without anything arriving: live, and while catching up. */
  starvedMs: 5_000,
  starvedCatchingUpMs: 30_000,
  /** Events scanned per page and checkpoint of a filtered subscription. */
  searchWindow: 5000,
  /** Size of a fold checkpoint's chunks, and how many of them one page of a read takes. */
  foldChunkBytes: 512 * 1024,
  foldPageEvents: 8,
  /** Events that are searched for a complete checkpoint. */
  foldSearchEvents: 512,
  /** How long a failed ping looks for a reason other than an absent server, over all hosts. */
  handshakeMs: 1_000,
  disposeMs: 2_000,
  /** Ping interval and ping timeout of the connection. They end a subscription whose server hangs. */
  keepaliveMs: 10_000,
  /** How long one node of a cluster may take to name the leader. */
  gossipSeconds: 2,
  /** The server's time from a slower answer is too inexact. */
  serverTimeMs: 5_000,
};

/** Tests pass other times. */
export type Tuning = Readonly<typeof standard>;

export const tuning: Tuning = standard;
