/**
 * Port: the log. Promises no more than EventStoreDB does, so that every adapter (embedded LMDB, EventStoreDB) and the
 * hostile wrapper of the tests pass one contract suite. Events have no meaning here. Implements
 * `docs/architecture.md#storage` and `docs/contract/domain.md#one-consistency-boundary-the-fleet`.
 *
 * Promised:
 * - an append is atomic, durable before it is answered, and its events are adjacent in the log;
 * - the revisions of a stream count from 0 without gaps, and positions grow strictly over all streams;
 * - a retry with the same ids and expected revision gets the answer of the first attempt and writes nothing;
 * - an event that this service cannot have written is returned as foreign, in the requested streams and no others.
 *
 * Not promised: a position in every answer, a known outcome of every append, a subscription that never drops, repeats
 * or splits a command, or a single `caught_up`.
 */
import { ServiceError } from '../kernel/errors.js';
import type { ProposedEvent, StoredEvent } from '../kernel/event.js';

/** `any` does not protect against repeats: use it only where a repeat is harmless. */
export type ExpectedRevision = number | 'no_stream' | 'any';

export type AppendOutcome =
  /** `revision` and `position` are those of the last event; the store does not always report the position. */
  | { readonly kind: 'appended'; readonly revision: number; readonly position: number | undefined }
  /** This call wrote nothing. An earlier attempt may have written some of the events. */
  | { readonly kind: 'conflict'; readonly actual: number | 'no_stream' }
  /** The events may get written, now or later. Look for their ids before trying again. */
  | { readonly kind: 'unknown'; readonly cause: string }
  /** Certainly not written: the store is out of reach or cannot accept it now. */
  | { readonly kind: 'unavailable'; readonly cause: string }
  /**
   * Certainly not written, and a retry would be refused too until an operator changes something. `what`: the store
   * refuses the stream (permissions, a tombstone), or just this append (its size or shape).
   */
  | { readonly kind: 'refused'; readonly what: 'stream' | 'append'; readonly cause: string };

/** Where a subscription resumes, exclusive. EventStoreDB needs both halves; the embedded log sets them equal. */
export interface ResumePoint {
  readonly commit: number;
  readonly prepare: number;
}

/** True when `a` is after `b` in the log. */
export const isAfter = (a: ResumePoint, b: ResumePoint): boolean =>
  a.commit > b.commit || (a.commit === b.commit && a.prepare > b.prepare);

/**
 * The highest position that a point has certainly passed. With `prepare` below `commit`, the point is just before the
 * record at `commit`, which may be the next event to be written.
 */
export const passedBy = ({ commit, prepare }: ResumePoint): number =>
  prepare < commit ? Math.max(0, commit - 1) : commit;

/**
 * True when a log whose newest event is at `head` cannot have produced the point: the log was restored from an older
 * backup. With `prepare` below `commit`, the point may be the end of the log, past the head, so nothing can be said.
 */
export const isBeyond = ({ commit, prepare }: ResumePoint, head: number): boolean =>
  commit > head && prepare === commit;

export type LogItem =
  /** 1 to `bounds.itemEvents` events, about `bounds.itemBytes` at most unless there is only one. */
  | { readonly kind: 'events'; readonly events: readonly StoredEvent[] }
  /** Everything of the streams up to this point has been delivered. May be rare, late or missing. */
  | { readonly kind: 'checkpoint'; readonly point: ResumePoint }
  /** Everything in the log when the subscription started has been delivered. May come more than once. */
  | { readonly kind: 'caught_up' };

export interface SubscribeOptions {
  /**
   * Only these streams, by exact name. A store whose subscriptions can silently lag compares the heads of the streams
   * with what they deliver; only such a store throws `StarvedError`.
   */
  readonly streams: readonly string[];
  readonly after: ResumePoint | 'start';
  /** For a reader that needs little: roughly how much to put into an item, and to read ahead. `bounds` when absent. */
  readonly ahead?: { readonly events: number; readonly bytes: number } | undefined;
  /** Ends the iteration without an error. */
  readonly signal: AbortSignal;
}

/** A live subscription delivered nothing although the log grew. The next subscription uses a new connection. */
export class StarvedError extends ServiceError {
  readonly position: number;

  /** @param position of an event that is in the log but was not delivered */
  constructor(position: number) {
    super('unavailable', `The subscription to the log delivers nothing, although the log has an event at ${position}.`);
    this.name = 'StarvedError';
    this.position = position;
  }
}

export interface ReadOptions {
  readonly direction: 'forward' | 'backward';
  /**
   * Inclusive. `end` only backward, `start` only forward. Past the head, forward is empty, backward starts at the head.
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

/** The state of a fold at a revision, so that a start need not replay the whole log. Losing it only costs time. */
export interface FoldCheckpoint {
  readonly foldVersion: number;
  readonly revision: number;
  readonly position: number;
  /** Lower-case hex of SHA-256 over `bytes`. */
  readonly sha256: string;
  readonly bytes: Uint8Array;
}

/**
 * A store's clock. An instance compares its own clock with it, and so notices when its own is wrong. Both ports have
 * it; `src/instance/store-clocks.ts` decides what a difference means.
 */
export type StoreTime =
  /** The store has its own clock, which shows this time now. */
  | { readonly kind: 'clock'; readonly at: number }
  /**
   * The store uses this instance's clock, and has recorded something at this time: it cannot be earlier now. `measured`
   * follows the clock as well, but runs at most twice as fast as the store has measured, restarts included.
   */
  | { readonly kind: 'not_before'; readonly at: number; readonly measured: number };

export interface EventStore {
  /**
   * Appends 1 or more events with consecutive revisions. Answers within `bounds.appendTimeoutMs` (`bounds.ts`).
   * @throws RangeError on an empty list or one beyond the limits: the caller's mistake
   */
  append(stream: string, expected: ExpectedRevision, events: readonly ProposedEvent[]): Promise<AppendOutcome>;
  /** Reads a missing stream as empty. @throws ServiceError `unavailable` */
  read(stream: string, options: ReadOptions): AsyncIterable<StoredEvent>;
  /** Iterates until aborted. @throws ServiceError `unavailable` when dropped; subscribe again from the last point */
  subscribe(options: SubscribeOptions): AsyncIterable<LogItem>;
  /** Sets the given limits; the rest of the stream's metadata stays. @throws ServiceError `unavailable` */
  setRetention(stream: string, retention: Retention): Promise<void>;
  loadFoldCheckpoint(name: string): Promise<FoldCheckpoint | undefined>;
  /** Replaces the checkpoint of the same name. Must not be called for a name while a call for that name is running. */
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

/** The part of a log store that an export or a proof needs. */
export type LogReader = Pick<EventStore, 'read' | 'subscribe' | 'headPosition'>;

/** The revision of a stream's last event, or undefined for an empty stream. @throws ServiceError `unavailable` */
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
