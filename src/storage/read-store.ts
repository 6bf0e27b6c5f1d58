/**
 * Port: read models, and the small shared state beside the log (telemetry, leases, last-good
 * snapshots). No transactions: writes of projected documents are guarded by log positions, a delete is a guarded
 * tombstone, and the checkpoint is written last. All other writes are durable when they resolve, but for those of leases. So any number of instances may project the same events. Not a query
 * language: only what LMDB, MongoDB and FerretDB can all do. Implements `docs/architecture.md#read-models`.
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

/** Fields compared for equality first, then one field to sort or range on. `id` is always the last key. */
export interface IndexSpec {
  readonly fields: readonly string[];
  /**
   * Every query that uses it binds all fields but the last to values. A store may then keep the index smaller and count
   * each group of documents that are equal in those fields, so that totals need no scan. Does not change results.
   */
  readonly grouped?: boolean;
}

export interface CollectionSpec {
  /** `[a-z_]+`; together with `version` it names the physical collection. */
  readonly name: string;
  readonly version: number;
  readonly indexes: readonly IndexSpec[];
  /**
   * Nobody queries the collection before it is opened once more without this: a store may make its indexes then, from all
   * documents at once.
   */
  readonly indexedLater?: boolean;
}

export type Scalar = string | number | boolean | null;

export type Filter =
  /** A list matches when one of its entries is equal. A missing field equals null. */
  | { readonly field: string; readonly op: 'eq'; readonly value: Scalar }
  | { readonly field: string; readonly op: 'in'; readonly value: readonly Scalar[] }
  /** Compares numbers with numbers, and strings with strings by code points; anything else does not match. */
  | { readonly field: string; readonly op: 'gt' | 'gte' | 'lt' | 'lte'; readonly value: string | number }
  /** Case-sensitive substring; to ignore case, store a lower-cased field. */
  | { readonly field: string; readonly op: 'contains'; readonly value: string };

export interface Query {
  /** All must match. */
  readonly where?: readonly Filter[];
  /** Order: null, false, true, numbers, strings by code points. Ties are broken by id, ascending. */
  readonly sort?: readonly { readonly field: string; readonly direction: 'asc' | 'desc' }[];
  readonly skip?: number;
  /** At least 1. */
  readonly limit: number;
}

export interface Page<F extends Fields = Fields> {
  readonly items: readonly StoredDocument<F>[];
  /** All matching documents, on every page. */
  readonly total: number;
}

/**
 * `before` is the document that the write was computed from, if there was one. A store may use it instead of decoding
 * the stored document, provided that both have the same position.
 */
export type GuardedWrite<F extends Fields = Fields> =
  | {
      readonly kind: 'put';
      readonly id: string;
      readonly position: number;
      readonly fields: F;
      readonly before?: StoredDocument<F>;
    }
  | { readonly kind: 'delete'; readonly id: string; readonly position: number; readonly before?: StoredDocument<F> };

export interface Collection<F extends Fields = Fields> {
  readonly spec: CollectionSpec;
  /** A tombstone reads as undefined. */
  get(id: string): Promise<StoredDocument<F> | undefined>;
  /** In the order of `ids`, without missing documents and tombstones. */
  getMany(ids: readonly string[]): Promise<readonly StoredDocument<F>[]>;
  find(query: Query): Promise<Page<F>>;
  count(where?: readonly Filter[]): Promise<number>;
  /**
   * Applies, in order, each write whose position is above that of the stored document or tombstone, and skips the
   * others as repeated or late. Visible when it resolves, and durable before any other kind of write that comes later
   * is: what a crash of the machine undoes is written again from the log, behind the stored checkpoint.
   * @returns how many were applied
   */
  write(writes: readonly GuardedWrite<F>[]): Promise<number>;
  /** Unguarded puts at position 0; the last one wins. For telemetry and the like, never for a projected collection. */
  set(documents: readonly { readonly id: string; readonly fields: F }[]): Promise<void>;
  /** Puts a document unless its id exists. Atomic. @returns whether it did */
  insert(id: string, fields: F): Promise<boolean>;
  /** Removes without tombstones: only for documents that no projection writes, or whose events have expired. */
  remove(ids: readonly string[]): Promise<void>;
  /** Removes tombstones up to a position. Call it when every live instance has passed that position. */
  purgeTombstones(upTo: number): Promise<number>;
}

/**
 * A claim that expires by itself. Times are the store's, so instances need no common clock. A crash of the machine that holds
 * the store may undo the newest ones.
 */
export interface Lease {
  readonly kind: string;
  readonly name: string;
  readonly holder: string;
  /** Milliseconds left when it was read; above 0. */
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
  /** Takes the lease from whoever holds it. */
  take(kind: string, claim: LeaseClaim): Promise<void>;
  /** Takes the lease if it is free, expired or already this holder's. @returns whether the holder has it now */
  acquire(kind: string, claim: LeaseClaim): Promise<boolean>;
  /** Extends the leases that their holders still have, expired or not. @returns the names of the others */
  renew(kind: string, claims: readonly LeaseClaim[]): Promise<readonly string[]>;
  /** Ends the lease if the holder has it. */
  release(kind: string, name: string, holder: string): Promise<void>;
  /** Undefined for an expired lease. */
  get(kind: string, name: string): Promise<Lease | undefined>;
  /** All leases of a kind that have not expired. */
  list(kind: string): Promise<readonly Lease[]>;
  /** Removes leases that expired more than `olderThanMs` ago. */
  purge(kind: string, olderThanMs: number): Promise<void>;
}

/** An event of the log that read models hold, by which the log is known again. */
export interface Anchor {
  readonly stream: string;
  readonly revision: number;
  /** Id of the event. */
  readonly id: string;
}

/** How far read models are. */
export interface Checkpoint extends ResumePoint {
  readonly anchors?: readonly Anchor[];
}

export interface ReadStore {
  /** Opens a collection; creates it and its declared indexes when missing. Idempotent. */
  collection<F extends Fields>(spec: CollectionSpec): Promise<Collection<F>>;
  /** Drops a physical collection with its documents, indexes and tombstones. Idempotent. */
  drop(name: string, version: number): Promise<void>;

  loadCheckpoint(projection: string, version: number): Promise<Checkpoint | undefined>;
  /** Ignores a checkpoint whose point is lower than the stored one. */
  saveCheckpoint(projection: string, version: number, checkpoint: Checkpoint): Promise<void>;
  deleteCheckpoint(projection: string, version: number): Promise<void>;

  /** The version of a projection that queries read, or undefined before the first activation. */
  activeVersion(projection: string): Promise<number | undefined>;
  activate(projection: string, version: number): Promise<void>;

  readonly leases: Leases;
  /** What the store knows of the time now; undefined when it knows nothing. @throws ServiceError `unavailable` */
  time(): Promise<StoreTime | undefined>;
  /** @throws ServiceError `unavailable` when the store cannot serve. */
  ping(): Promise<void>;
  close(): Promise<void>;
}
