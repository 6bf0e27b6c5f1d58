/**
 * Leases in the memory of this process, which alone owns the data folder. They end with the process, and changes of the
 * machine's clock do not affect them. Implements `read-store.ts` (Leases).
 */
import type { Clock } from '../../../kernel/clock.js';
import { getOrMake } from '../../../kernel/maps.js';
import type { Lease, LeaseClaim, Leases } from '../../read-store.js';
import { assertLeaseName } from '../../bounds.js';

interface HeldLease extends Omit<Lease, 'remainingMs'> {
  /** By the monotonic clock, in milliseconds. */
  readonly endsAt: number;
}

export function createLeases(clock: Pick<Clock, 'monotonic'>): Leases {
  /** Kind → name → lease, expired or not. */
  const kinds = new Map<string, Map<string, HeldLease>>();

  function put(kind: string, { name, holder, ttlMs, data }: LeaseClaim): void {
    assertLeaseName(kind, name);
    getOrMake(kinds, kind, () => new Map()).set(name, { kind, name, holder, data, endsAt: clock.monotonic() + ttlMs });
  }

  const holderOf = (kind: string, name: string): string | undefined => kinds.get(kind)?.get(name)?.holder;

  function live(held: HeldLease | undefined): Lease | undefined {
    if (held === undefined) return undefined;
    const { endsAt, ...lease } = held;
    const remainingMs = endsAt - clock.monotonic();
    return remainingMs > 0 ? { ...lease, remainingMs } : undefined;
  }

  return {
    async take(kind, claim) {
      put(kind, claim);
    },
    async acquire(kind, claim) {
      const held = live(kinds.get(kind)?.get(claim.name));
      if (held !== undefined && held.holder !== claim.holder) return false;
      put(kind, claim);
      return true;
    },
    async renew(kind, claims) {
      const isHeld = ({ name, holder }: LeaseClaim): boolean => holderOf(kind, name) === holder;
      const lost = claims.filter((claim) => !isHeld(claim)).map(({ name }) => name);
      for (const claim of claims) if (isHeld(claim)) put(kind, claim);
      return lost;
    },
    async release(kind, name, holder) {
      if (holderOf(kind, name) === holder) kinds.get(kind)?.delete(name);
    },
    list: async (kind) => [...(kinds.get(kind)?.values() ?? [])].flatMap((held) => live(held) ?? []),
    async purge(kind, olderThanMs) {
      const before = clock.monotonic() - olderThanMs;
      for (const [name, { endsAt }] of kinds.get(kind) ?? []) if (endsAt < before) kinds.get(kind)?.delete(name);
    },
  };
}
