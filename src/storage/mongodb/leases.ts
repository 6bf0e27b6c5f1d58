/**
 * Leases on the server's clock. Implements `read-store.ts` (Leases).
 *
 * An update that computes with the server's time needs a pipeline, which not every server has. So the time is read
 * first (`hello`) and then compared and written like any value. It is slightly stale, which favours a live holder: a
 * lease counts as expired only if it had expired when the time was read. Each change affects one document, atomically.
 */
import type { Collection, Db } from 'mongodb';
import type { Json } from '../../kernel/json.js';
import type { Lease, LeaseClaim, Leases } from '../read-store.js';
import { assertLeaseName } from '../bounds.js';
import { batches } from './batches.js';
import { replaceOrInsert } from './failures.js';
import type { IndexKey } from './indexes.js';
import { serverTime } from './server-time.js';
import { reading } from './tuning.js';

export interface MongoLease {
  readonly _id: string;
  readonly kind: string;
  readonly name: string;
  readonly holder: string;
  /** Kind, name and holder in one value, to find many leases and their holders at once. */
  readonly held: string;
  /** Milliseconds since the epoch on the server's clock. */
  readonly endsAt: number;
  readonly data: string;
}

export const leaseIndexes: readonly IndexKey[] = [{ kind: 1, endsAt: 1 }, { held: 1 }];

function leaseId(kind: string, name: string): string {
  assertLeaseName(kind, name);
  return JSON.stringify([kind, name]);
}

const heldKey = (kind: string, name: string, holder: string): string => JSON.stringify([kind, name, holder]);

function encode(kind: string, { name, holder, ttlMs, data }: LeaseClaim, now: number): MongoLease {
  return {
    _id: leaseId(kind, name),
    kind,
    name,
    holder,
    held: heldKey(kind, name, holder),
    endsAt: now + ttlMs,
    data: JSON.stringify(data),
  };
}

function live({ kind, name, holder, endsAt, data }: MongoLease, now: number): Lease | undefined {
  const remainingMs = endsAt - now;
  return remainingMs > 0 ? { kind, name, holder, remainingMs, data: JSON.parse(data) as Json } : undefined;
}

export function createLeases(db: Db, leases: Collection<MongoLease>): Leases {
  async function stillHeld(keys: readonly string[]): Promise<ReadonlyMap<string, MongoLease>> {
    // Reads the primary's current state, as the updates do: a lost lease must not look held to its holder.
    const held = await leases
      .find({ held: { $in: [...keys] } }, { ...reading, readConcern: { level: 'local' } })
      .toArray();
    return new Map(held.map((lease) => [lease.held, lease]));
  }

  /** Extends the leases that are still held. @returns how many */
  async function extend(wanted: readonly MongoLease[]): Promise<number> {
    const current = await stillHeld(wanted.map(({ held }) => held));
    const ends = new Map<number, string[]>();
    const changed: MongoLease[] = [];
    for (const lease of wanted) {
      const existing = current.get(lease.held);
      if (existing === undefined) continue;
      if (existing.data !== lease.data) changed.push(lease);
      else ends.set(lease.endsAt, [...(ends.get(lease.endsAt) ?? []), lease.held]);
    }
    // Most renewals extend by the same time, so that one update covers them all.
    const operations = [
      ...[...ends].map(([endsAt, held]) => ({
        updateMany: { filter: { held: { $in: held } }, update: { $set: { endsAt } } },
      })),
      ...changed.map(({ held, endsAt, data }) => ({
        updateOne: { filter: { held }, update: { $set: { endsAt, data } } },
      })),
    ];
    if (operations.length === 0) return 0;
    return (await leases.bulkWrite(operations, { ordered: false })).matchedCount;
  }

  return {
    async take(kind, claim) {
      const lease = encode(kind, claim, await serverTime(db));
      const replace = () => replaceOrInsert(leases, { _id: lease._id }, lease);
      // The second of two that insert at once replaces the first one's document.
      if (!(await replace())) await replace();
    },
    async acquire(kind, claim) {
      const now = await serverTime(db);
      const lease = encode(kind, claim, now);
      const free = { _id: lease._id, $or: [{ holder: claim.holder }, { endsAt: { $lte: now } }] };
      return replaceOrInsert(leases, free, lease);
    },
    async renew(kind, claims) {
      const lost: string[] = [];
      for (const batch of batches(claims)) {
        const now = await serverTime(db);
        const wanted = batch.map((claim) => encode(kind, claim, now));
        if ((await extend(wanted)) === wanted.length) continue;
        const current = await stillHeld(wanted.map(({ held }) => held));
        lost.push(...wanted.filter(({ held }) => !current.has(held)).map(({ name }) => name));
      }
      return lost;
    },
    async release(kind, name, holder) {
      await leases.deleteOne({ _id: leaseId(kind, name), holder });
    },
    async list(kind) {
      const all = await leases.find({ kind }, reading).toArray();
      // Read afterwards, so that every listed lease was live when the list was read.
      const now = await serverTime(db);
      return all.flatMap((lease) => live(lease, now) ?? []);
    },
    async purge(kind, olderThanMs) {
      await leases.deleteMany({ kind, endsAt: { $lt: (await serverTime(db)) - olderThanMs } });
    },
  };
}
