/**
 * The event feed as REST and webhooks see it: the log as items, in its order, from any place on. Items are made from the log
 * when they are read, and not stored. Implements `docs/contract/automation.md#event-feed`.
 */
import type { ApplyError } from '../domain/agents/facts.js';
import type { Readers } from '../domain/audit/describe.js';
import type { RolloutStateName, RolloutStepped } from '../domain/rollout/rollout.js';
import type { StatusFact } from '../domain/status/facts.js';
import type { EntryConfirmation, LoggedEntry, StoredEntry } from '../projections/port.js';

/** The types of items; `ready` and `end` belong to a live stream. */
export type FeedType = FeedContent['type'];

export type FeedContent =
  | {
      readonly type: 'command' | 'sign_in';
      readonly data: LoggedEntry & { readonly confirm: EntryConfirmation | null };
    }
  | { readonly type: 'status'; readonly data: Omit<StatusFact, 'again'> }
  | {
      readonly type: 'rollout';
      readonly data: Pick<RolloutStepped['data'], 'entry_id' | 'policy' | 'state' | 'wave' | 'reason'> & {
        readonly id: string;
        /** null for its start. */
        readonly was: RolloutStateName | null;
      };
    }
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
        readonly errors: readonly ApplyError[];
      };
    };

/** The part of an item that filters compare. */
export interface FeedSubject {
  readonly type: FeedType;
  readonly resources: readonly { readonly type: string; readonly id: string | null }[];
  /** Ids of the nodes that a command touched, or of a fact's node; `all` if they are too many to name. */
  readonly nodes: readonly string[] | 'all';
  /** The author of a command; null for facts. */
  readonly actor: { readonly id: string | null; readonly name: string | null } | null;
  readonly readers: Readers;
  /** Of a `status` item. */
  readonly status?: string;
}

export interface FeedItem {
  readonly type: FeedType;
  /** Opaque visible ASCII without `.`: on every instance, the feed resumes right after the item. */
  readonly cursor: string;
  /** Log position of the command's last event; a fraction below it when other items of the command follow. */
  readonly position: number;
  /** When it happened, RFC 3339. */
  readonly at: string;
  /** The content's `data` as JSON, made once for all readers. */
  readonly json: string;
  readonly about: FeedSubject;
  /** Why a command can never be reverted; null for others. */
  readonly final: string | null;
}

/** A place in the feed, between two items. Only `Feed.resolve` and `Feed.read` make one. */
export interface FeedPlace {
  /** Log position of the last event before it, or a fraction below between items of one command; -1 before the first event. */
  readonly position: number;
  /** Resumes here; null only before the first event of the log. */
  readonly cursor: string | null;
}

export interface FeedBatch {
  /** In the log's order. */
  readonly items: readonly FeedItem[];
  /** After everything that was read. */
  readonly place: FeedPlace;
  /** Number of events read. */
  readonly looked: number;
  /** True if the place is the end of the log, as far as this instance knows. */
  readonly caughtUp: boolean;
}

export interface FeedReadOptions {
  /** At least 1. */
  readonly maxItems: number;
  /** Limit of the items' JSON in bytes, which a single item may exceed; by default that of `limits.feed`. */
  readonly maxBytes?: number;
  /** Selects items (`filters.ts`); absent: all. */
  readonly select?: ((about: FeedSubject) => boolean) | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** What has just happened at the end of the feed. */
export type FeedNews =
  /** The items of all commands after `from` up to `to`. */
  | { readonly kind: 'items'; readonly from: FeedPlace; readonly items: readonly FeedItem[]; readonly to: FeedPlace }
  /** The end of the log is reached again, after a gap. */
  | { readonly kind: 'caught_up' };

export interface Feed {
  /**
   * The place of `start`, `now` or a cursor. Everything that this instance had answered before the call is before `now`.
   * @throws ServiceError `invalid_request` for anything else, `conflict` for a cursor that does not fit this log, `unavailable`
   * while the store is away
   */
  resolve(after: string): Promise<FeedPlace>;
  /** The place after the command of an event. @throws ServiceError `unavailable`; Error if the log has no such event */
  behind(stream: string, revision: number): Promise<FeedPlace>;
  /** Like `resolve`, for a stored cursor whose log may have moved to a store with other positions. @throws as `resolve` */
  resolveMoved(cursor: string): Promise<FeedPlace>;
  /**
   * Reads after a place, from the window in memory or else from the log. The batch is bounded by items, bytes and events
   * (`limits.feed`), and may be empty before the end. Few callers read the log at a time; the others wait.
   * @throws ServiceError `unavailable` while a store is away or after a long wait; try again from the same place
   */
  read(place: FeedPlace, options: FeedReadOptions): Promise<FeedBatch>;
  /** The current end of the feed; `live`: it is the end of the log as well. */
  end(): { readonly place: FeedPlace; readonly live: boolean };
  /** Calls back with news, in order. @returns how to stop */
  onNews(listener: (news: FeedNews) => void): () => void;
  /** Resolves once there is something after the place, when the signal aborts, or after `timeoutMs`. */
  wait(place: FeedPlace, timeoutMs: number, signal?: AbortSignal): Promise<void>;
  /** How far a place is behind the log: the age of the first command after it, 0 at the end. @throws ServiceError `unavailable` */
  lag(place: FeedPlace): Promise<{ readonly seconds: number; readonly caught_up: boolean }>;
  close(): Promise<void>;
}

export interface RecentEntries {
  /** At most ten, newest first, including everything answered before the call. @param admin includes those for admins only */
  of(reader: { readonly admin: boolean }): Promise<readonly StoredEntry[]>;
}
