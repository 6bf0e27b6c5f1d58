/** The lease of an instance on the embedded store. */
import { afterEach, beforeEach, expect, test } from 'vitest';
import {
  liveInstances,
  startInstanceLease,
  type InstanceLease,
  type InstanceLeaseDeps,
} from '../../src/instance/instance-lease.js';
import { silentLogger } from '../../src/kernel/logger.js';
import { eventually } from '../support/eventually.js';
import { createManualClock, type ManualClock } from '../support/manual-clock.js';
import { openTemporaryStores, type TemporaryStores } from '../support/temporary-stores.js';

let clock: ManualClock;
let stores: TemporaryStores;

beforeEach(async () => {
  clock = createManualClock();
  stores = await openTemporaryStores(clock);
});
afterEach(() => stores.close());

const start = (
  accounts: InstanceLeaseDeps['accounts'],
  { instanceId = 'i1', readStore = stores.readStore } = {},
): Promise<InstanceLease> =>
  startInstanceLease({
    readStore,
    instanceId,
    clock,
    logger: silentLogger,
    revokedUpTo: () => 3,
    accounts,
    compilerVersion: 3,
    activity: () => activity,
  });
const activity = {
  heartbeats_per_minute: 12,
  last_5m: { bytes_in: 1, bytes_out: 2, total_sessions: 3, error_sessions: 4 },
};
const seen = {
  instance_id: 'i1',
  revoked_up_to: 3,
  compiler_version: 3,
  activity,
  started_at: '2025-01-01T00:00:00.000Z',
};

test('a live instance shows its values of the last renewal, until it closes', async () => {
  let accounts = 41;
  const lease = await start(() => accounts);
  accounts = 42;
  expect(await liveInstances(stores.readStore)).toEqual([{ ...seen, accounts: 41 }]);
  await lease.publish();
  expect(await liveInstances(stores.readStore)).toEqual([{ ...seen, accounts: 42 }]);
  await lease.close();
  expect(await liveInstances(stores.readStore)).toEqual([]);
});

test('an older value that a store takes long to write does not replace a newer one', async () => {
  let accounts = 41;
  const slow: (() => void)[] = [];
  const { leases } = stores.readStore;
  const take: typeof leases.take = async (kind, claim) => {
    if (accounts === 42) await new Promise<void>((resolve) => slow.push(resolve));
    await leases.take(kind, claim);
  };
  const lease = await start(() => accounts, { readStore: { ...stores.readStore, leases: { ...leases, take } } });
  accounts = 42;
  const older = lease.publish();
  await eventually(() => slow).toHaveLength(1);
  accounts = 43;
  const newer = lease.publish();
  await new Promise((resolve) => setImmediate(resolve));
  slow[0]?.();
  await Promise.all([older, newer]);
  expect(await liveInstances(stores.readStore)).toEqual([{ ...seen, accounts: 43 }]);
  // Nor does it bring back the lease of an instance that has closed meanwhile.
  accounts = 42;
  const last = lease.publish();
  await eventually(() => slow).toHaveLength(2);
  const closed = lease.close();
  await new Promise((resolve) => setImmediate(resolve));
  slow[1]?.();
  await Promise.all([last, closed]);
  expect(await liveInstances(stores.readStore)).toEqual([]);
});

test('a killed instance is gone once its lease has ended', async () => {
  const lease = await start(() => 1);
  clock.advance(10_000);
  expect(await liveInstances(stores.readStore)).toEqual([]);
  await lease.close();
});

test('on a store that no other process can have open, a killed instance is gone as soon as the next one starts', async () => {
  await start(() => 1);
  const { readStore, close } = await stores.reopened();
  const next = await start(() => 2, { instanceId: 'i2', readStore });
  expect(await liveInstances(readStore)).toMatchObject([{ instance_id: 'i2' }]);
  await next.close();
  await close();
});
