/**
 * Port: the log. Says what the service may rely on, which is no more than what EventStoreDB keeps, so that every
 * adapter (embedded LMDB, EventStoreDB) and the hostile wrapper of the tests pass one contract suite.
 * Not a place for rules about events. Implements `docs/architecture.md` (storage) and `docs/contract/domain.md` (streams, retention).
 *
 * What is promised:
 * - one append is atomic, durable before it is answered, and its events lie next to each other in the log;
 * - revisions of a stream count from 0 without gaps, positions grow strictly over all streams;
 * - a retry with the same ids and the same expected revision is answered like the first try and writes nothing.
 * What is not: a position in every answer, a known outcome of every append, a subscription that never drops, never
 * repeats or never splits a command, and only one `caught_up`.
 */
import type { ProposedEvent, RecordedEvent } from '../kernel/event.js';

/** `any` gives no protection against a repeat: only for streams where a repeat does no harm. */
export type ExpectedRevision = number | 'no_stream' | 'any';

export type AppendOutcome =
  /** `revision` is that of the last event; `position` likewise, missing when the store no longer tells it. */
  | { readonly kind: 'appended'; readonly revision: number; readonly position: number | undefined }
  /** Nothing of this append was written by this call. A part of it may stand there from an earlier try. */
  | { readonly kind: 'conflict'; readonly actual: number | 'no_stream' }
  /** It may be written, now or later. Look for the event ids before anything else. */
  | { readonly kind: 'unknown'; readonly cause: string }
  /** Certainly not written: the store could not be reached or refused to write. */
  | { readonly kind: 'unavailable'; readonly cause: string };

/** Where a subscription goes on: exclusive. Both halves are needed by EventStoreDB; embedded sets them equal. */
export interface ResumePoint {
  readonly commit: number;
  readonly prepare: number;
}

/** True when `a` lies behind `b` in the log. */
export const isAfter = (a: ResumePoint, b: ResumePoint): boolean =>
  a.commit > b.commit || (a.commit === b.commit && a.prepare > b.prepare);

export type LogItem =
  /** 1 to `bounds.itemEvents` events, of about `bounds.itemBytes` at most unless there is only one. */
  | { readonly kind: 'events'; readonly events: readonly RecordedEvent[] }
  /** Nothing of the prefix lies up to here that was not delivered. May be rare, late, or never come. */
  | { readonly kind: 'checkpoint'; readonly point: ResumePoint }
  /** All that was in the log when the subscription began, or later, has been delivered. May come more than once. */
  | { readonly kind: 'caught_up' };

export interface SubscribeOptions {
  /** Streams whose name starts so. */
  readonly prefix: string;
  readonly after: ResumePoint | 'start';
  /** Ends the iteration without an error. */
  readonly signal: AbortSignal;
}

export interface ReadOptions {
  readonly direction: 'forward' | 'backward';
  /** Inclusive. `end` only backward, `start` only forward. Beyond the head: forward is empty, backward is the head. */
  readonly from: number | 'start' | 'end';
  /** At least 1. */
  readonly maxCount: number;
}

/** `$maxAge` and `$maxCount` of a stream: what lies beyond is no longer read; revisions go on counting. */
export interface Retention {
  readonly maxAgeSeconds?: number;
  readonly maxCount?: number;
}

/** The state of a fold at a revision, so that a start need not replay the log. Losing one costs time, never truth. */
export interface FoldCheckpoint {
  readonly foldVersion: number;
  readonly revision: number;
  readonly position: number;
  /** Lower-case hex of SHA-256 over `bytes`. */
  readonly sha256: string;
  readonly bytes: Uint8Array;
}

export interface EventStore {
  /**
   * Appends 1 or more events with consecutive revisions. Answers within `bounds.appendTimeoutMs` (`bounds.ts`).
   * @throws RangeError on an empty list or one over the limits: a fault of the caller.
   */
  append(stream: string, expected: ExpectedRevision, events: readonly ProposedEvent[]): Promise<AppendOutcome>;
  /** Reads a missing stream as empty. @throws ServiceError `unavailable` */
  read(stream: string, options: ReadOptions): AsyncIterable<RecordedEvent>;
  /** Iterates until aborted. @throws ServiceError `unavailable` when dropped: subscribe again from the last point. */
  subscribe(options: SubscribeOptions): AsyncIterable<LogItem>;
  setRetention(stream: string, retention: Retention): Promise<void>;
  loadFoldCheckpoint(name: string): Promise<FoldCheckpoint | undefined>;
  /** Replaces the one of that name. */
  saveFoldCheckpoint(name: string, checkpoint: FoldCheckpoint): Promise<void>;
  /** Position of the newest event of any stream; 0 for an empty log. */
  headPosition(): Promise<number>;
  /** @throws ServiceError `unavailable` when the store cannot serve. */
  ping(): Promise<void>;
  close(): Promise<void>;
}

/** The revision of a stream's last event, or undefined for a stream without any. @throws ServiceError `unavailable` */
export async function lastRevision(store: EventStore, stream: string): Promise<number | undefined> {
  for await (const event of store.read(stream, { direction: 'backward', from: 'end', maxCount: 1 })) {
    return event.revision;
  }
  return undefined;
}

/** The first event of a stream at a revision or behind it, or undefined. @throws ServiceError `unavailable` */
export async function firstFrom(
  store: EventStore,
  stream: string,
  from: number | 'start',
): Promise<RecordedEvent | undefined> {
  for await (const event of store.read(stream, { direction: 'forward', from, maxCount: 1 })) return event;
  return undefined;
}
