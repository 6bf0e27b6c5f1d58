/**
 * Leases on the clock of this process, which alone owns the data folder. Implements `read-store.ts` (Leases).
 */
import { yieldToEventLoop } from '../../../kernel/background.js';
import type { Clock } from '../../../kernel/clock.js';
import type { Json } from '../../../kernel/json.js';
import type { Lease, LeaseClaim, Leases } from '../../read-store.js';
import { assertLeaseName } from '../../read-store-limits.js';
import { justAbove, type ReadBatch, type ReadEnvironment, type RunWrite } from './layout.js';
import { tuning } from '../tuning.js';

interface StoredLease {
  readonly holder: string;
  /** Milliseconds since the epoch. */
  readonly endsAt: number;
  readonly data: Json;
}

/** Renewals of one call that share an operation. */
const renewalsPerOperation = 200;

function leaseKey(kind: string, name: string): Buffer {
  assertLeaseName(kind, name);
  return Buffer.from(`${kind}\u0000${name}`, 'utf8');
}

const kindRange = (kind: string): { from: Buffer; to: Buffer } => ({
  from: Buffer.from(`${kind}\u0000`, 'utf8'),
  to: Buffer.from(`${kind}\u0001`, 'utf8'),
});

const nameOf = (kind: string, key: Buffer): string => key.toString('utf8', Buffer.byteLength(kind) + 1);

const decode = (value: Buffer | undefined): StoredLease | undefined =>
  value === undefined ? undefined : (JSON.parse(value.toString('utf8')) as StoredLease);

export function createLeases(environment: ReadEnvironment, runWrite: RunWrite, clock: Clock): Leases {
  // Only the process that owns the folder asks for them: after a crash of the machine, they were those of a dead one.
  const run: RunWrite = (operation, options) => runWrite(operation, { ...options, durability: 'visible' });

  function put(batch: ReadBatch, kind: string, claim: LeaseClaim): void {
    const lease: StoredLease = { holder: claim.holder, endsAt: clock.now() + claim.ttlMs, data: claim.data };
    batch.put('leases', leaseKey(kind, claim.name), Buffer.from(JSON.stringify(lease)));
  }

  /** @returns the names of those that it did not hold any more */
  function renewAll(batch: ReadBatch, kind: string, claims: readonly LeaseClaim[]): readonly string[] {
    const lost: string[] = [];
    for (const claim of claims) {
      const stored = decode(batch.get('leases', leaseKey(kind, claim.name)));
      if (stored?.holder === claim.holder) put(batch, kind, claim);
      else lost.push(claim.name);
    }
    return lost;
  }

  function live(kind: string, name: string, stored: StoredLease | undefined): Lease | undefined {
    if (stored === undefined) return undefined;
    const remainingMs = stored.endsAt - clock.now();
    return remainingMs > 0 ? { kind, name, holder: stored.holder, remainingMs, data: stored.data } : undefined;
  }

  /** All stored leases of a kind in slices, expired ones included. */
  function* slices(kind: string): Generator<{ key: Buffer; name: string; stored: StoredLease }[], void, void> {
    const { to, ...start } = kindRange(kind);
    let { from } = start;
    for (;;) {
      const slice = environment.entries('leases', { from, to, limit: tuning.sliceEntries });
      const last = slice.at(-1);
      if (last === undefined) return;
      yield slice.flatMap(({ key, value }) => {
        const stored = decode(value);
        return stored === undefined ? [] : [{ key, name: nameOf(kind, key), stored }];
      });
      from = justAbove(last.key);
    }
  }

  return {
    take: (kind, claim) => run((batch) => put(batch, kind, claim)),
    acquire: (kind, claim) =>
      run((batch) => {
        const stored = decode(batch.get('leases', leaseKey(kind, claim.name)));
        if (stored !== undefined && stored.holder !== claim.holder && stored.endsAt > clock.now()) return false;
        put(batch, kind, claim);
        return true;
      }),
    async renew(kind, claims) {
      // In parts, because operations of other callers wait for each; they share a flush all the same.
      const parts: Promise<readonly string[]>[] = [];
      for (let start = 0; start < claims.length; start += renewalsPerOperation) {
        const part = claims.slice(start, start + renewalsPerOperation);
        parts.push(run((batch) => renewAll(batch, kind, part)));
      }
      return (await Promise.all(parts)).flat();
    },
    release: (kind, name, holder) =>
      run((batch) => {
        const key = leaseKey(kind, name);
        if (decode(batch.get('leases', key))?.holder === holder) batch.remove('leases', key);
      }),
    async get(kind, name) {
      return live(kind, name, decode(environment.get('leases', leaseKey(kind, name))));
    },
    async list(kind) {
      const leases: Lease[] = [];
      for (const slice of slices(kind)) {
        for (const { name, stored } of slice) {
          const lease = live(kind, name, stored);
          if (lease !== undefined) leases.push(lease);
        }
        await yieldToEventLoop();
      }
      return leases;
    },
    async purge(kind, olderThanMs) {
      for (const slice of slices(kind)) {
        await run((batch) => {
          for (const { key } of slice) {
            const stored = decode(batch.get('leases', key));
            if (stored !== undefined && stored.endsAt < clock.now() - olderThanMs) batch.remove('leases', key);
          }
        });
      }
    },
  };
}
