/**
 * Port: read models, and the small shared state beside the log (telemetry, leases, wrapped data keys, kept snapshots).
 * No transactions: each projected document carries the log position it reflects and its writes are guarded by it, a
 * delete is a guarded tombstone, and the checkpoint is written last; so any number of instances may project the same
 * events. Not a query language: what the adapters on LMDB and MongoDB (and FerretDB) can all do, and no more.
 * Implements `docs/architecture.md`, "Read models need no transactions".
 */
import type { Json } from '../kernel/json.js';
import type { ResumePoint } from './event-store.js';

export type FieldValue = Json | Uint8Array;
export type Fields = { readonly [field: string]: FieldValue };

export interface StoredDocument<F extends Fields = Fields> {
  readonly id: string;
  /** Log position that the document reflects; 0 for documents that no projection writes. */
  readonly position: number;
  readonly fields: F;
}

/** Equality fields first, then one field to sort or range on. `id` is always the last key. */
export interface IndexSpec {
  readonly fields: readonly string[];
  /**
   * Queries that use it bind every field but the last to values. A store may then keep it smaller, and count each group
   * of documents that are equal in those fields, so that totals need no walk. Answers are the same without.
   */
  readonly grouped?: boolean;
}

export interface CollectionSpec {
  /** `[a-z_]+`; with `version` it names the physical collection. */
  readonly name: string;
  readonly version: number;
  readonly indexes: readonly IndexSpec[];
}

export type Scalar = string | number | boolean | null;

export type Filter =
  /** On a field that is a list: one of its entries is equal. A missing field equals null. */
  | { readonly field: string; readonly op: 'eq'; readonly value: Scalar }
  | { readonly field: string; readonly op: 'in'; readonly value: readonly Scalar[] }
  /** Numbers with numbers, strings with strings by code points; anything else does not match. */
  | { readonly field: string; readonly op: 'gt' | 'gte' | 'lt' | 'lte'; readonly value: string | number }
  /** Case-sensitive substring: store a lower-cased field to search without regard to case. */
  | { readonly field: string; readonly op: 'contains'; readonly value: string };

export interface Query {
  /** All must hold. */
  readonly where?: readonly Filter[];
  /** null sorts first, then false, true, numbers, strings by code points. Ties are broken by id, ascending. */
  readonly sort?: readonly { readonly field: string; readonly direction: 'asc' | 'desc' }[];
  readonly skip?: number;
  /** At least 1. */
  readonly limit: number;
}

export interface Page<F extends Fields = Fields> {
  readonly items: readonly StoredDocument<F>[];
  /** Documents that match, over all pages. */
  readonly total: number;
}

/**
 * `before`: the document that the write was made from, if there was one. A store may go by it where it would have to
 * read what it replaces, once it has seen that what stands has this position.
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
  /** Missing ones and tombstones are left out; order is that of `ids`. */
  getMany(ids: readonly string[]): Promise<readonly StoredDocument<F>[]>;
  find(query: Query): Promise<Page<F>>;
  count(where?: readonly Filter[]): Promise<number>;
  /**
   * Applies, in order, each write whose position is above the one that stands (a tombstone's counts); the others are
   * skipped: they are repeats or late. Returns how many were applied. Durable when it returns.
   */
  write(writes: readonly GuardedWrite<F>[]): Promise<number>;
  /** Puts without a guard, last one wins, position 0: telemetry and the like. Never on a projected collection. */
  set(documents: readonly { readonly id: string; readonly fields: F }[]): Promise<void>;
  /** Only when there is no document of that id. Returns whether it was put. Atomic. */
  insert(id: string, fields: F): Promise<boolean>;
  /** Removes at once, no tombstone: only for documents that no projection writes. */
  remove(ids: readonly string[]): Promise<void>;
  /** Removes tombstones at or below a position: call once every live instance has passed it. */
  purgeTombstones(upTo: number): Promise<number>;
}

/**
 * A claim that ends by itself. Times are the store's, so instances need no common clock.
 */
export interface Lease {
  readonly kind: string;
  readonly name: string;
  readonly holder: string;
  /** Milliseconds that were left when it was read; never negative. */
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
  /** Takes it whoever holds it. */
  take(kind: string, claim: LeaseClaim): Promise<void>;
  /** Takes it if it is free, ended or the holder's own. Returns whether it is the holder's now. */
  acquire(kind: string, claim: LeaseClaim): Promise<boolean>;
  /** Prolongs those that their holder still holds, ended or not; returns the names of those that it does not. */
  renew(kind: string, claims: readonly LeaseClaim[]): Promise<readonly string[]>;
  /** Ends it if the holder holds it. */
  release(kind: string, name: string, holder: string): Promise<void>;
  /** Live ones only. */
  get(kind: string, name: string): Promise<Lease | undefined>;
  list(kind: string): Promise<readonly Lease[]>;
  /** Removes what ended more than `olderThanMs` ago. */
  purge(kind: string, olderThanMs: number): Promise<void>;
}

export interface ReadStore {
  /** Opens, creating the collection and its declared indexes when missing. Idempotent. */
  collection<F extends Fields>(spec: CollectionSpec): Promise<Collection<F>>;
  /** Drops a physical collection with its documents, indexes and tombstones. Idempotent. */
  drop(name: string, version: number): Promise<void>;

  loadCheckpoint(projection: string, version: number): Promise<ResumePoint | undefined>;
  /** Never moves back: a lower point than the stored one is ignored. */
  saveCheckpoint(projection: string, version: number, point: ResumePoint): Promise<void>;
  deleteCheckpoint(projection: string, version: number): Promise<void>;

  /** The version of a projection that queries read, or undefined before the first was activated. */
  activeVersion(projection: string): Promise<number | undefined>;
  activate(projection: string, version: number): Promise<void>;

  readonly leases: Leases;
  /** @throws ServiceError `unavailable` when the store cannot serve. */
  ping(): Promise<void>;
  close(): Promise<void>;
}
