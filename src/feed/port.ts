/**
 * What REST and webhooks read of the event feed: the log as items, in its order, from any place on. Not a second store:
 * every item is made from the log when it is read. Implements `docs/contract/automation.md#event-feed`.
 */
import type { AuditEntry } from '../projections/port.js';

/** The types that are in the log. `status` is derived and not among them; `ready` and `end` belong to a live stream. */
export type FeedType = FeedContent['type'];

/** An audit entry without what changes later. */
export type FeedEntry = Omit<AuditEntry, 'revertible' | 'not_revertible_because' | 'reverted_by'>;

export type FeedContent =
  | { readonly type: 'command' | 'sign_in'; readonly data: FeedEntry }
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
  /** Who may read it: everybody, admins, or admins and the user of that id. */
  readonly readers: 'all' | 'admins' | { readonly userId: string };
}

export type FeedItem = FeedContent & {
  /** Opaque, visible ASCII without `.`: the feed goes on exactly behind it, on every instance. */
  readonly cursor: string;
  /** Log position of the command's last event. */
  readonly position: number;
  /** When it happened, RFC 3339. */
  readonly at: string;
  readonly about: FeedSubject;
};

/** A place in the feed, between two commands. Only `Feed.resolve` and `Feed.read` make one. */
export interface FeedPlace {
  /** Log position of the last event before it; -1 before the first event. */
  readonly position: number;
  /** Resumes here; null only before the first event of the log. */
  readonly cursor: string | null;
}

export interface FeedBatch {
  /** In the log's order, of all types and for all readers: `filters.ts` selects. */
  readonly items: readonly FeedItem[];
  /** Behind everything that was looked at. */
  readonly place: FeedPlace;
  /** True when the place is at the end of the log, as far as this instance knows it. */
  readonly caughtUp: boolean;
}

export interface FeedReadOptions {
  /** At most this many items are returned, at least 1. */
  readonly maxItems: number;
  readonly signal?: AbortSignal | undefined;
}

/**
 * How the feed is read.
 * @internal until the feed itself is there
 */
export interface Feed {
  /**
   * The place that a caller names: `start`, `now` or a cursor. Behind `now` lies nothing that this instance had answered
   * before the call.
   * @throws ServiceError `invalid_request` for what is no cursor, `conflict` for a cursor of another log, beyond its head or
   * at which another event stands, `unavailable` while the store is away
   */
  resolve(after: string): Promise<FeedPlace>;
  /**
   * What follows a place, from the window in memory or else from the log: a bounded piece, which may be empty without being
   * the end.
   * @throws ServiceError `unavailable` while a store is away; try again from the same place
   */
  read(place: FeedPlace, options: FeedReadOptions): Promise<FeedBatch>;
  /** Resolves when something may lie behind the place, the signal aborts, or the time, in milliseconds, is over. */
  wait(place: FeedPlace, timeoutMs: number, signal?: AbortSignal): Promise<void>;
  /**
   * How far a place is behind the log: the age of the first event behind it, in seconds; 0 when caught up.
   * @throws ServiceError `unavailable`
   */
  lag(place: FeedPlace): Promise<{ readonly seconds: number; readonly caught_up: boolean }>;
}
