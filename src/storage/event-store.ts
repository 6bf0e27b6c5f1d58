/**
 * Port: the log. Promises no more than EventStoreDB keeps, so that every adapter (embedded LMDB, EventStoreDB) and the
 * hostile wrapper of the tests pass one contract suite. Events have no meaning here. Implements
 * `docs/architecture.md#storage` and `docs/contract/domain.md#one-consistency-boundary-the-fleet`.
 *
 * Promised:
 * - an append is atomic, durable before it is answered, and its events are adjacent in the log;
 * - the revisions of a stream count from 0 without gaps, and positions grow strictly over all streams;
 * - a retry with the same ids and the same expected revision gets the answer of the first try and writes nothing;
 * - an event that this service cannot have written is handed out as one, in the streams that are asked for and no others.
 *
 * Not promised: a position in every answer, a known outcome of every append, a subscription that never drops, repeats
 * or splits a command, and a single `caught_up`.
 */
import { ServiceError } from '../kernel/errors.js';
import type { ProposedEvent, StoredEvent } from '../kernel/event.js';

/** `any` does not protect against repeats: use it only where a repeat is harmless. */
export type ExpectedRevision = number | 'no_stream' | 'any';

export type AppendOutcome =
  /** `revision` and `position` belong to the last event; the store does not always report the position. */
  | { readonly kind: 'appended'; readonly revision: number; readonly position: number | undefined }
  /** This call wrote nothing. An earlier try may have written some of the events. */
  | { readonly kind: 'conflict'; readonly actual: number | 'no_stream' }
  /** The events may be written, now or later. Look for their ids before trying again. */
  | { readonly kind: 'unknown'; readonly cause: string }
  /** Certainly not written: the store could not be reached, or cannot take it now. */
  | { readonly kind: 'unavailable'; readonly cause: string }
  /**
   * Certainly not written, and another try would be refused as well until an operator has changed something. `what`: the
   * store takes nothing into this stream (rights, a tombstone), or not this append (its size or shape).
   */
  | { readonly kind: 'refused'; readonly what: 'stream' | 'append'; readonly cause: string };

/** Where a subscription resumes, exclusive. EventStoreDB needs both halves; the embedded log sets them equal. */
export interface ResumePoint {
  readonly commit: number;
  readonly prepare: number;
}

/** True when `a` comes after `b` in the log. */
export const isAfter = (a: ResumePoint, b: ResumePoint): boolean =>
  a.commit > b.commit || (a.commit === b.commit && a.prepare > b.prepare);

/**
 * The highest position that a point is certainly past. With `prepare` below `commit` it is the place before the record at
 * `commit`, which may be the next event to be written.
 */
export const passedBy = ({ commit, prepare }: ResumePoint): number =>
  prepare < commit ? Math.max(0, commit - 1) : commit;

/**
 * True when a log whose newest event is at `head` cannot have given the point: it was restored from an older backup. With
 * `prepare` below `commit` the point may be the end of the log, which lies behind the head, so nothing can be said.
 */
export const isBeyond = ({ commit, prepare }: ResumePoint, head: number): boolean =>
  commit > head && prepare === commit;

export type LogItem =
  /** 1 to `bounds.itemEvents` events, of about `bounds.itemBytes` at most unless there is only one. */
  | { readonly kind: 'events'; readonly events: readonly StoredEvent[] }
  /** Everything of the streams up to this point has been delivered. May be rare, late or missing. */
  | { readonly kind: 'checkpoint'; readonly point: ResumePoint }
  /** Everything that was in the log when the subscription began has been delivered. May come more than once. */
  | { readonly kind: 'caught_up' };

export interface SubscribeOptions {
  /**
   * Only these streams, by their exact names. If a store's subscriptions can lag without knowing it, the store compares
   * the heads of the streams with what they deliver: only such a store throws `StarvedError`.
   */
  readonly streams: readonly string[];
  readonly after: ResumePoint | 'start';
  /** For a reader that wants little: about so much is in an item, and read ahead of the consumer. As `bounds` when absent. */
  readonly ahead?: { readonly events: number; readonly bytes: number } | undefined;
  /** Ends the iteration without an error. */
  readonly signal: AbortSignal;
}

/** A subscription that was alive delivered nothing although the log went on. The next one uses a new connection. */
export class StarvedError extends ServiceError {
  readonly position: number;

  /** @param position of an event that the log has and that was not delivered */
  constructor(position: number) {
    super('unavailable', `The subscription to the log delivers nothing, and the log has an event at ${position}.`);
    this.name = 'StarvedError';
    this.position = position;
  }
}

export interface ReadOptions {
  readonly direction: 'forward' | 'backward';
  /**
   * Inclusive. `end` only backward, `start` only forward. Beyond the head, a forward read is empty and a backward read
   * starts at the head.
   */
  readonly from: number | 'start' | 'end';
  /** At least 1. */
  readonly maxCount: number;
}

/** `$maxAge` and `$maxCount` of a stream: older events are no longer readable; revisions keep counting. */
export interface Retention {
  readonly maxAgeSeconds?: number;
  readonly maxCount?: number;
}

/** The state of a fold at a revision, so that a start need not replay the whole log. Losing one costs only time. */
export interface FoldCheckpoint {
  readonly foldVersion: number;
  readonly revision: number;
  readonly position: number;
  /** Lower-case hex of SHA-256 over `bytes`. */
  readonly sha256: string;
  readonly bytes: Uint8Array;
}

/**
 * A store's clock. An instance compares its own with it and so notices that its own is wrong. Both ports have it;
 * `src/instance/store-clocks.ts` decides what follows from a difference.
 */
export type StoreTime =
  /** The store has a clock of its own, which shows this time now. */
  | { readonly kind: 'clock'; readonly at: number }
  /**
   * The store lives by this instance's clock, and has recorded something at this time: it cannot be earlier. `measured`
   * follows the clock as well, but passes at most twice as fast as the store has measured, restarts included.
   */
  | { readonly kind: 'not_before'; readonly at: number; readonly measured: number };

export interface EventStore {
  /**
   * Appends 1 or more events with consecutive revisions. Answers within `bounds.appendTimeoutMs` (`bounds.ts`).
   * @throws RangeError on an empty list or one beyond the limits, which is the caller's fault
   */
  append(stream: string, expected: ExpectedRevision, events: readonly ProposedEvent[]): Promise<AppendOutcome>;
  /** Reads a missing stream as empty. @throws ServiceError `unavailable` */
  read(stream: string, options: ReadOptions): AsyncIterable<StoredEvent>;
  /** Iterates until aborted. @throws ServiceError `unavailable` when dropped; subscribe again from the last point */
  subscribe(options: SubscribeOptions): AsyncIterable<LogItem>;
  /** Sets what is given; the rest of the stream's metadata stays. @throws ServiceError `unavailable` */
  setRetention(stream: string, retention: Retention): Promise<void>;
  loadFoldCheckpoint(name: string): Promise<FoldCheckpoint | undefined>;
  /** Replaces the checkpoint of that name. */
  saveFoldCheckpoint(name: string, checkpoint: FoldCheckpoint): Promise<void>;
  /** Subscriptions that have ended with `StarvedError` since the store was opened. */
  starved(): number;
  /** Position of the newest event of any stream; 0 for an empty log. */
  headPosition(): Promise<number>;
  /** The store's time now; undefined when it has none. @throws ServiceError `unavailable` */
  time(): Promise<StoreTime | undefined>;
  /** @throws ServiceError `unavailable` when the store cannot serve. */
  ping(): Promise<void>;
  close(): Promise<void>;
}

/** What an export or a proof needs of a log. */
export type LogReader = Pick<EventStore, 'read' | 'subscribe' | 'headPosition'>;

/** The revision of a stream's last event, or undefined for a stream without any. @throws ServiceError `unavailable` */
export async function lastRevision(store: Pick<EventStore, 'read'>, stream: string): Promise<number | undefined> {
  return (await newestEvent(store, stream))?.revision;
}

/** The last event of a stream, or undefined. @throws ServiceError `unavailable` */
export async function newestEvent(store: Pick<EventStore, 'read'>, stream: string): Promise<StoredEvent | undefined> {
  for await (const event of store.read(stream, { direction: 'backward', from: 'end', maxCount: 1 })) return event;
  return undefined;
}

/** All events of a stream, in order. @throws ServiceError `unavailable` */
export function wholeStream(store: Pick<EventStore, 'read'>, stream: string): AsyncIterable<StoredEvent> {
  return store.read(stream, { direction: 'forward', from: 'start', maxCount: Number.MAX_SAFE_INTEGER });
}

/** The first event of a stream at or after a revision, or undefined. @throws ServiceError `unavailable` */
export async function firstFrom(
  store: Pick<EventStore, 'read'>,
  stream: string,
  from: number | 'start',
): Promise<StoredEvent | undefined> {
  for await (const event of store.read(stream, { direction: 'forward', from, maxCount: 1 })) return event;
  return undefined;
}
