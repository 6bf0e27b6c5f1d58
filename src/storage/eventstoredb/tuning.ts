/**
 * Tuning numbers of the EventStoreDB adapter. Each wait is shorter than the 10 seconds that the client and its pings
 * take. The bounds that every adapter keeps are in `../bounds.ts`.
 */
import { bounds } from '../bounds.js';

const MiB = 1024 * 1024;

const standard = {
  /** One append with all its tries, and one try. */
  appendMs: bounds.appendTimeoutMs as number,
  appendTryMs: 5_000,
  /** How long an append that was certainly not written is tried again. */
  appendRetryMs: 3_000,
  retry: { firstMs: 20, maxMs: 500 },
  appendsWaiting: 20_000,
  /** One page of a read, from the request to its end. */
  readPageMs: 8_000,
  readPageEvents: 500,
  /** How long a failing page is tried again. */
  readRetryMs: 3_000,
  /** The same for a ping, which runs every second: long enough to move to another leader. */
  pingRetryMs: 500,
  /** Open reads and open subscriptions of this process. A connection carries 100 streams; further calls hang. */
  reads: 40,
  subscriptions: 40,
  /** Appends in flight of this process, one stream each. */
  appendsAtOnce: 16,
  /** How long a call waits for a place. */
  placeWaitMs: 5_000,
  /** How long a subscription waits for its confirmation. */
  confirmMs: 8_000,
  /** Queued events at which a subscription pauses, and at which it resumes. */
  queueHigh: 2000,
  queueLow: 500,
  /** Queued bytes of JSON at which a subscription pauses; it resumes below half of it. */
  queueBytesHigh: 16 * MiB,
  /** Consecutive drops without an event in between after which a subscription ends with an error. */
  slowTries: 5,
  /** How often the heads of the streams are read beside a subscription to which nothing arrives. */
  headEveryMs: 3_000,
  /** How long a subscription may be behind such a head without anything arriving: live, and while catching up. */
  starvedMs: 5_000,
  starvedCatchingUpMs: 30_000,
  /** Events scanned per page and checkpoint of a filtered subscription. */
  searchWindow: 5000,
  /** Chunk of a fold checkpoint, and how many of them one page of a read takes. */
  foldChunkBytes: 512 * 1024,
  foldPageEvents: 8,
  /** Events that are searched for a complete checkpoint. */
  foldSearchEvents: 512,
  /** How long a ping that fails looks for a reason beside an absent server, over all hosts. */
  handshakeMs: 1_000,
  disposeMs: 2_000,
  /** Ping interval and ping timeout of the connection. They end a subscription whose server hangs. */
  keepaliveMs: 10_000,
  /** How long one node of a cluster may take to name the leader. */
  gossipSeconds: 2,
  /** A slower answer about the server's time is too inexact. */
  serverTimeMs: 5_000,
};

/** Tests pass other times. */
export type Tuning = Readonly<typeof standard>;

export const tuning: Tuning = standard;
