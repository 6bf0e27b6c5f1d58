/** Data keys that are made before the resources that they are for. */
import { afterEach, beforeEach, expect, it } from 'vitest';
import { randomIds } from '../../src/kernel/ids.js';
import { silentLogger } from '../../src/kernel/logger.js';
import type { Keyring } from '../../src/security/keyring.js';
import { createKeyring } from '../../src/security/keyring.js';
import { createKeySupply } from '../../src/security/key-supply.js';
import type { KeySupply, NewResource } from '../../src/security/key-supply.js';
import { createMasterKey } from '../../src/security/master-key.js';
import { eventually } from '../support/eventually.js';
import { createMemoryDataKeyStore } from '../support/memory-data-key-store.js';
import type { MemoryDataKeyStore } from '../support/memory-data-key-store.js';

let store: MemoryDataKeyStore;
let keyring: Keyring;
let supply: KeySupply;
let away = false;
/** The most keys that were stored at the same time. */
let most = 0;

const start = (idleMs?: number): KeySupply =>
  createKeySupply({ keyring, ids: randomIds, logger: silentLogger, ...(idleMs === undefined ? {} : { idleMs }) });
beforeEach(() => {
  [away, most] = [false, 0];
  store = createMemoryDataKeyStore();
  const put: MemoryDataKeyStore['put'] = async (keyId, wrapped) => {
    if (away) throw new Error('the read store is away');
    await store.put(keyId, wrapped);
    most = Math.max(most, store.entries.size);
  };
  keyring = createKeyring({ masterKey: createMasterKey(Buffer.alloc(32, 7)), store: { ...store, put } });
  supply = start();
});
afterEach(() => supply.close());

const takeSoon = async (): Promise<NewResource> => {
  let taken: NewResource | undefined;
  await eventually(() => (taken ??= supply.take())).toBeDefined();
  return taken!;
};

it('gives each id once, with a data key that is stored for it and seals without another', async () => {
  expect(supply.take()).toBeUndefined();
  const taken = [await takeSoon(), await takeSoon(), await takeSoon()];
  expect(new Set(taken.map(({ id }) => id)).size).toBe(3);
  for (const { id, keyId } of taken) {
    expect(store.entries.get(keyId)?.resource_id).toBe(id);
    const context = { stream: 'svc-fleet', resourceId: id, field: 'f' };
    const sealed = await keyring.seal(Buffer.from('secret'), context, keyId);
    expect(sealed.key_id).toBe(keyId);
    expect(await keyring.open(sealed, context)).toEqual({ kind: 'opened', plaintext: Buffer.from('secret') });
  }
});

it('makes none before the first creation, and then two', async () => {
  await new Promise(setImmediate);
  expect(store.entries.size).toBe(0);
  supply.take();
  await eventually(() => store.entries.size).toBe(2);
});

it('holds 64 at most, however many are created at once', async () => {
  for (let index = 0; index < 200; index += 1) expect(supply.take()).toBeUndefined();
  await supply.close();
  expect(most).toBeGreaterThan(1);
  expect(most).toBeLessThanOrEqual(64);
});

it('shreds what nobody takes, after a while and when it is closed', async () => {
  supply = start(20);
  supply.take();
  await eventually(() => store.entries.size).toBe(2);
  await eventually(() => store.entries.size).toBe(0);
  supply.take();
  await supply.close();
  expect(store.entries.size).toBe(0);
  expect(supply.take()).toBeUndefined();
});

it('gives none while the store is away, and again when it is back', async () => {
  away = true;
  for (let index = 0; index < 5; index += 1) {
    expect(supply.take()).toBeUndefined();
    await new Promise(setImmediate);
  }
  away = false;
  expect(store.entries.get((await takeSoon()).keyId)).toBeDefined();
});
