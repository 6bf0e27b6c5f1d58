/**
 * Which instance delivers which webhook: a lease for each, in the read store. An instance that starts takes over at once what
 * its former process held on the same address; all others wait until a lease has expired.
 * Implements `docs/contract/automation.md#webhooks`, "one instance delivers, by a lease".
 */
import type { Clock } from '../kernel/clock.js';
import type { LeaseClaim, Leases } from '../storage/read-store.js';
import { tuning } from './tuning.js';

const kind = 'webhooks';

export interface DeliveryLeasesDeps {
  readonly leases: Leases;
  readonly instanceId: string;
  /** The same for a process that is started again in the same place, and for no other; undefined when nothing is. */
  readonly station: string | undefined;
  readonly clock: Pick<Clock, 'monotonic'>;
}

export interface DeliveryLeases {
  /** Renews what is held, ends what is no longer wanted and takes what is free. @throws ServiceError `unavailable` */
  turn(wanted: readonly string[]): Promise<void>;
  /** Whether this instance may deliver the webhook now. */
  holds(id: string): boolean;
  /** Ends all. */
  close(): Promise<void>;
}

export function createDeliveryLeases({ leases, instanceId, station, clock }: DeliveryLeasesDeps): DeliveryLeases {
  /** Id → until when, by the monotonic clock; counted from before the store was asked. */
  const held = new Map<string, number>();
  let first = true;
  const claim = (name: string): LeaseClaim => ({
    name,
    holder: instanceId,
    ttlMs: tuning.leaseMs,
    data: { station: station ?? null },
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
      } else if (first && station !== undefined && isOf(station, data)) {
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

function isOf(station: string, data: unknown): boolean {
  return typeof data === 'object' && data !== null && Reflect.get(data, 'station') === station;
}
