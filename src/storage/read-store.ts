/**
 * Port: read models, and the small shared state beside the log (telemetry, leases, last-good snapshots). No
 * transactions: writes of projected documents are guarded by log positions and the checkpoint is written last, so any
 * number of instances may project the same events. All other writes, except those of leases, are durable when they
 * resolve. Documents are found by id, or by their collection's only index. Implements `docs/architecture.md#read-models`.
 */
import type { Json } from '../kernel/json.js';
import type { ResumePoint, StoreTime } from './event-store.js';

export type FieldValue = Json | Uint8Array;
export type Fields = { readonly [field: string]: FieldValue };

export interface StoredDocument<F extends Fields = Fields> {
  readonly id: string;
  /** Log position that the document reflects; 0 when no projection writes it. */
  readonly position: number;
  readonly fields: F;
}

/** The only index of a collection: documents in groups, ordered within each. See `group-index.ts`. */
export interface IndexSpec {
  /** A field with a string or a list of strings: the document's groups. With any other value, it is in none. */
  readonly group: string;
  /** A field with a printable ASCII string of at most 200 characters, which orders each group; then by id. */
  readonly order: string;
  /** A time field that queries may filter by, for an order that is not by time: RFC 3339, UTC, milliseconds. */
  readonly time?: string;
}

/** The documents that are in all of these groups, with order and time within the bounds. */
export interface GroupRange {
  /** At least one. */
  readonly groups: readonly string[];
  /** Inclusive. */
  readonly from?: string | undefined;
  /** Exclusive. */
  readonly below?: string | undefined;
  /** Both inclusive. Walks each entry of the group within the bounds, as with several groups. */
  readonly times?: { readonly from?: string | undefined; readonly to?: string | undefined } | undefined;
}

export interface GroupQuery extends GroupRange {
  readonly direction: 'asc' | 'desc';
  readonly skip?: number;
  /** At least 1. */
  readonly limit: number;
}

export interface CollectionSpec {
  /** `[a-z_]+`; together with `version` it names the physical collection. */
  readonly name: string;
  readonly version: number;
  /** The same whenever this version is opened: a changed index needs a new version. */
  readonly index?: IndexSpec | undefined;
}

export interface Collection<F extends Fields = Fields> {
  readonly spec: CollectionSpec;
  get(id: string): Promise<StoredDocument<F> | undefined>;
  /** In the order of `ids`, without missing documents. */
  getMany(ids: readonly string[]): Promise<readonly StoredDocument<F>[]>;
  /** Up to `limit` documents after the id `after`, ordered by id. For walks through a whole collection. */
  list(after: string | undefined, limit: number): Promise<readonly StoredDocument<F>[]>;
  /**
   * One page of the documents in the groups. A page of one group costs its skipped index entries and its own documents.
   * With several groups, or times, the entries of the smallest group are walked and looked up in the others.
   * @throws RangeError on a bad query, or without an index
   */
  find(query: GroupQuery): Promise<readonly StoredDocument<F>[]>;
  /** The number of documents in the groups: one read for a whole group, otherwise a walk like `find`. */
  count(range: GroupRange): Promise<number>;
  /**
   * Puts, in order, each document whose position is above the one of the stored document, and skips the others as
   * repeated or late. Visible when it resolves, and durable before any later write of another kind: writes lost in a
   * machine crash are repeated from the log, starting at the stored checkpoint.
   */
  write(documents: readonly StoredDocument<F>[]): Promise<void>;
  /** Unguarded puts at position 0; the last one wins. For telemetry and the like, never for a projected collection. */
  set(documents: readonly { readonly id: string; readonly fields: F }[]): Promise<void>;
  /** Puts, in one write, the documents whose ids do not exist yet; each is atomic. @returns the ids that were put */
  insert(documents: readonly { readonly id: string; readonly fields: F }[]): Promise<readonly string[]>;
  /** A late write may bring a removed document back: only for those that no projection writes, or that have expired. */
  remove(ids: readonly string[]): Promise<void>;
}

/**
 * A claim that expires by itself. Times are the store's, so instances need no common clock. A crash of the machine that
 * holds the store may undo the newest ones; in a store that only one process can open, they end with the process.
 */
export interface Lease {
  readonly kind: string;
  readonly name: string;
  readonly holder: string;
  /** Milliseconds left at the time of the read; above 0. */
  readonly remainingMs: number;
  readonly data: Json;
}

export interface LeaseClaim {
  readonly name: string;
  readonly holder: string;
  readonly ttlMs: number;
  readonly data: Json;
}

export interface Leases {
  /** Takes the lease, whoever holds it. */
  take(kind: string, claim: LeaseClaim): Promise<void>;
  /** Takes the lease if it is free, expired or already this holder's. @returns whether the holder has it now */
  acquire(kind: string, claim: LeaseClaim): Promise<boolean>;
  /** Extends the leases that their holders still have, expired or not. @returns the names of the others */
  renew(kind: string, claims: readonly LeaseClaim[]): Promise<readonly string[]>;
  /** Ends the lease if the holder still has it. */
  release(kind: string, name: string, holder: string): Promise<void>;
  /** All leases of a kind that have not expired. */
  list(kind: string): Promise<readonly Lease[]>;
  /** Removes leases that expired more than `olderThanMs` ago. */
  purge(kind: string, olderThanMs: number): Promise<void>;
}

/** An event of the log, kept beside the read models to recognise the log by. */
export interface Anchor {
  readonly stream: string;
  readonly revision: number;
  /** Id of the event. */
  readonly id: string;
}

/** How far the read models have come. */
export interface Checkpoint extends ResumePoint {
  readonly anchors: readonly Anchor[];
}

export interface ReadStore {
  /** Opens a collection; creates it and its declared indexes when missing. Idempotent. */
  collection<F extends Fields>(spec: CollectionSpec): Promise<Collection<F>>;
  /** Drops a physical collection with its documents and indexes. Idempotent. */
  drop(name: string, version: number): Promise<void>;

  loadCheckpoint(projection: string, version: number): Promise<Checkpoint | undefined>;
  /** Ignores a checkpoint whose point is lower than the stored one. */
  saveCheckpoint(projection: string, version: number, checkpoint: Checkpoint): Promise<void>;
  deleteCheckpoint(projection: string, version: number): Promise<void>;

  /** The version of a projection that queries read, or undefined before the first activation. */
  activeVersion(projection: string): Promise<number | undefined>;
  activate(projection: string, version: number): Promise<void>;

  readonly leases: Leases;
  /** The store's time now; undefined when it has none. @throws ServiceError `unavailable` */
  time(): Promise<StoreTime | undefined>;
  /** @throws ServiceError `unavailable` when the store cannot serve. */
  ping(): Promise<void>;
  close(): Promise<void>;
}
