/** The store of data keys on a real read store. */
import { afterEach, beforeEach, expect, test } from 'vitest';
import { openDataKeyStore } from '../../src/security/data-key-documents.js';
import { createManualClock } from '../support/manual-clock.js';
import type { TemporaryStores } from '../support/temporary-stores.js';
import { openTemporaryStores } from '../support/temporary-stores.js';

let stores: TemporaryStores;
beforeEach(async () => {
  stores = await openTemporaryStores(createManualClock());
});
afterEach(() => stores.close());

test('lists every data key, over several pages, but not a deleted one', async () => {
  const store = await openDataKeyStore(stores.readStore);
  const wrapped = { v: 1, resource_id: 'r', master_key_id: 'm', nonce: 'n', ct: 'c' } as const;
  const ids = Array.from({ length: 1001 }, (_, index) => `dk_${index}`);
  for (const id of ids) void store.put(id, wrapped);
  await store.put('dk_last', wrapped);
  await store.delete('dk_last');
  expect(await store.get('dk_last')).toBeUndefined();
  expect(await store.get('dk_0')).toEqual(wrapped);
  const listed: string[] = [];
  for await (const id of store.list()) listed.push(id);
  expect(listed.sort()).toEqual([...ids].sort());
});
