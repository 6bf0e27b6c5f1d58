/**
 * What REST and webhooks read of the event feed: the log as items, in its order, from any place on. Not a second store:
 * every item is made from the log when it is read. Implements `docs/contract/automation.md#event-feed`.
 */
import type { Readers } from '../domain/audit/describe.js';
import type { AuditEntry, LoggedEntry } from '../projections/port.js';

/** The types that are in the log. `status` is derived and not among them; `ready` and `end` belong to a live stream. */
export type FeedType = FeedContent['type'];

export type FeedContent =
  | { readonly type: 'command' | 'sign_in'; readonly data: LoggedEntry }
  | {
      readonly type: 'session';
      readonly data: {
        readonly node_id: string;
        readonly node_name: string | null;
        readonly agent_version: string;
        readonly instance_id: string;
      };
    }
  | {
      readonly type: 'apply';
      readonly data: {
        readonly node_id: string;
        readonly node_name: string | null;
        readonly generation: number;
        readonly state: 'applied' | 'rejected';
        readonly errors: readonly {
          readonly resource_type: string;
          readonly resource_id: string;
          readonly path: string;
          readonly message: string;
        }[];
      };
    };

/** What filters compare. */
export interface FeedSubject {
  readonly type: FeedType | 'status';
  /** The resources that it is about. */
  readonly resources: readonly { readonly type: string; readonly id: string | null }[];
  /** Ids of the nodes that a command touched, or of the node that a fact is about; `all` when a command touched too many to name. */
  readonly nodes: readonly string[] | 'all';
  /** Who gave the command; null for facts. */
  readonly actor: { readonly id: string | null; readonly name: string | null } | null;
  readonly readers: Readers;
}

export interface FeedItem {
  readonly type: FeedType;
  /** Opaque, visible ASCII without `.`: the feed goes on exactly behind it, on every instance. */
  readonly cursor: string;
  /** Log position of the command's last event. */
  readonly position: number;
  /** When it happened, RFC 3339. */
  readonly at: string;
  /** The content's `data` as JSON, made once for all readers. */
  readonly json: string;
  readonly about: FeedSubject;
  /** Why a command can never be reverted; null of others. */
  readonly final: string | null;
}

/** A place in the feed, between two commands. Only `Feed.resolve` and `Feed.read` make one. */
export interface FeedPlace {
  /** Log position of the last event before it; -1 before the first event. */
  readonly position: number;
  /** Resumes here; null only before the first event of the log. */
  readonly cursor: string | null;
}

export interface FeedBatch {
  /** In the log's order. */
  readonly items: readonly FeedItem[];
  /** Behind everything that was looked at. */
  readonly place: FeedPlace;
  /** Events that were looked at. */
  readonly looked: number;
  /** True when the place is at the end of the log, as far as this instance knows it. */
  readonly caughtUp: boolean;
}

export interface FeedReadOptions {
  /** At most this many items are returned, at least 1. */
  readonly maxItems: number;
  /** Bytes of JSON that the items have together, unless there is only one; as `limits.feed` says when absent. */
  readonly maxBytes?: number;
  /** Whether an item is wanted (`filters.ts`); all are when absent. */
  readonly select?: ((about: FeedSubject) => boolean) | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** What has just happened at the end of the feed. */
export type FeedNews =
  /** Follows directly behind `from`; the items are those of all commands up to `to`. */
  | { readonly kind: 'items'; readonly from: FeedPlace; readonly items: readonly FeedItem[]; readonly to: FeedPlace }
  /** The end of the log is reached again, after a gap. */
  | { readonly kind: 'caught_up' };

export interface Feed {
  /**
   * The place that a caller names: `start`, `now` or a cursor. Behind `now` lies nothing that this instance had answered
   * before the call.
   * @throws ServiceError `invalid_request` for what is no cursor, `conflict` for a cursor of another log, beyond its head or
   * at which another event stands, `unavailable` while the store is away
   */
  resolve(after: string): Promise<FeedPlace>;
  /** The place behind the command of an event. @throws ServiceError `unavailable`; Error when the log has no such event */
  behind(stream: string, revision: number): Promise<FeedPlace>;
  /**
   * The place of a cursor that was written by this installation and may since have been moved with the log to another store,
   * where positions differ.
   * @throws ServiceError as `resolve`
   */
  resolveMoved(cursor: string): Promise<FeedPlace>;
  /**
   * What follows a place, from the window in memory or else from the log: a piece that is bounded by items, bytes and events
   * (`limits.feed`), and may be empty without being the end. Few read the log at a time; the others wait.
   * @throws ServiceError `unavailable` while a store is away or after a long wait; try again from the same place
   */
  read(place: FeedPlace, options: FeedReadOptions): Promise<FeedBatch>;
  /** The end of the feed now; `live` when it is the end of the log as well. */
  end(): { readonly place: FeedPlace; readonly live: boolean };
  /** Calls back with news, in order. @returns how to stop */
  onNews(listener: (news: FeedNews) => void): () => void;
  /** Resolves once something lies behind the place, when the signal aborts, or after `timeoutMs`. */
  wait(place: FeedPlace, timeoutMs: number, signal?: AbortSignal): Promise<void>;
  /** How far a place is behind the log: the age of the first command behind it in seconds, 0 when caught up. @throws ServiceError `unavailable` */
  lag(place: FeedPlace): Promise<{ readonly seconds: number; readonly caught_up: boolean }>;
  close(): Promise<void>;
}

/** The newest entries of commands, in memory. */
export interface RecentEntries {
  /** Newest first, ten at most, up to what was answered before the call. @param admin whether those that only admins see are among them */
  of(reader: { readonly admin: boolean }): Promise<readonly AuditEntry[]>;
}
