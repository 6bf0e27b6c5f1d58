/** One live lease, by its name. */
import type { Lease, Leases } from '../../src/storage/read-store.js';

export async function leaseOf(leases: Pick<Leases, 'list'>, kind: string, name: string): Promise<Lease | undefined> {
  return (await leases.list(kind)).find((lease) => lease.name === name);
}
