/** Leases of the embedded read store: they last as long as they say by measured time, and end with their process. */
import { afterEach, beforeEach, expect, it } from 'vitest';
import type { Leases } from '../../src/storage/read-store.js';
import { createManualClock } from '../support/manual-clock.js';
import { openTemporaryStores, type TemporaryStores } from '../support/temporary-stores.js';
import { leaseOf } from '../support/lease-of.js';

const hour = 3_600_000;
const claim = { name: 'n', holder: 'a', ttlMs: 30_000, data: null };
let aheadMs: number;
const clock = createManualClock();
const skewed = { now: () => clock.now() + aheadMs, monotonic: clock.monotonic };
let stores: TemporaryStores;
let leases: Leases;

beforeEach(async () => {
  aheadMs = hour;
  stores = await openTemporaryStores(skewed);
  ({ leases } = stores.readStore);
});
afterEach(() => stores.close());

it('a clock that was ahead and is set right makes none longer, and one that jumps ahead none shorter', async () => {
  expect(await leases.acquire('k', claim)).toBe(true);
  aheadMs = 0;
  clock.advance(29_999);
  expect((await leaseOf(leases, 'k', 'n'))?.remainingMs).toBe(1);
  aheadMs = hour;
  expect(await leases.acquire('k', { ...claim, holder: 'b' })).toBe(false);
  clock.advance(1);
  expect(await leases.acquire('k', { ...claim, holder: 'b' })).toBe(true);
});

it('none is left when the folder is opened again', async () => {
  await leases.take('k', claim);
  stores = await stores.reopened();
  expect(await stores.readStore.leases.list('k')).toEqual([]);
});
