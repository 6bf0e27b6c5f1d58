/**
 * Which instance delivers which webhook: one lease per webhook in the read store. A starting instance takes over the leases of
 * its previous process at once; others wait until a lease has expired.
 * Implements `docs/contract/automation.md#webhooks`, "one instance delivers, by a lease".
 */
import type { Clock } from '../kernel/clock.js';
import type { LeaseClaim, Leases } from '../storage/read-store.js';
import { tuning } from './tuning.js';

const kind = 'webhooks';

export interface DeliveryLeasesDeps {
  readonly leases: Leases;
  readonly instanceId: string;
  /** Identifies the place of this process across restarts; undefined if nothing does. */
  readonly slot: string | undefined;
  readonly clock: Pick<Clock, 'monotonic'>;
}

export interface DeliveryLeases {
  /** Renews held leases, releases unwanted ones and takes free ones. @throws ServiceError `unavailable` */
  turn(wanted: readonly string[]): Promise<void>;
  /** Whether this instance may deliver the webhook now. */
  holds(id: string): boolean;
  /** Releases all. */
  close(): Promise<void>;
}

export function createDeliveryLeases({ leases, instanceId, slot, clock }: DeliveryLeasesDeps): DeliveryLeases {
  /** By id: when the lease ends, monotonic; counted from before the request to the store. */
  const held = new Map<string, number>();
  let first = true;
  const claim = (name: string): LeaseClaim => ({
    name,
    holder: instanceId,
    ttlMs: tuning.leaseMs,
    // The stored name.
    data: { station: slot ?? null },
  });

  async function renew(): Promise<void> {
    const names = [...held.keys()];
    if (names.length === 0) return;
    const until = clock.monotonic() + tuning.leaseMs;
    const lost = new Set(await leases.renew(kind, names.map(claim)));
    for (const name of names) {
      if (lost.has(name)) held.delete(name);
      else held.set(name, until);
    }
  }

  async function takeFree(wanted: readonly string[]): Promise<void> {
    const others = new Map((await leases.list(kind)).map((lease) => [lease.name, lease.data]));
    for (const name of wanted) {
      if (held.has(name)) continue;
      const until = clock.monotonic() + tuning.leaseMs;
      const data = others.get(name);
      if (data === undefined) {
        if (await leases.acquire(kind, claim(name))) held.set(name, until);
      } else if (first && slot !== undefined && isFrom(slot, data)) {
        await leases.take(kind, claim(name));
        held.set(name, until);
      }
    }
    if (first) await leases.purge(kind, tuning.leasePurgeMs);
    first = false;
  }

  return {
    async turn(wanted) {
      await renew();
      for (const name of held.keys()) {
        if (wanted.includes(name)) continue;
        held.delete(name);
        await leases.release(kind, name, instanceId);
      }
      await takeFree(wanted);
    },
    holds: (id) => (held.get(id) ?? 0) > clock.monotonic(),
    async close() {
      const names = [...held.keys()];
      held.clear();
      await Promise.all(names.map((name) => leases.release(kind, name, instanceId)));
    },
  };
}

function isFrom(slot: string, data: unknown): boolean {
  return typeof data === 'object' && data !== null && Reflect.get(data, 'station') === slot;
}
