/** A new master key under the data keys, interrupted anywhere: one of the two keys opens all of them. */
import { randomBytes } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { newDataKey, unwrapDataKey, wrapDataKey } from '../../src/security/data-keys.js';
import { createMasterKey } from '../../src/security/master-key.js';
import type { MasterKey } from '../../src/security/master-key.js';
import { dropOtherWraps, rewrapDataKeys } from '../../src/security/rewrap.js';
import { createMemoryDataKeyStore } from '../support/memory-data-key-store.js';
import type { MemoryDataKeyStore } from '../support/memory-data-key-store.js';

const [old, next] = [createMasterKey(randomBytes(32)), createMasterKey(randomBytes(32))];
const installation = 'the installation';
const keyIds = ['dk_0', 'dk_1', 'dk_2', 'dk_3', 'dk_4', 'dk_5'];
/** Those that a start opens: not the first nor the last of the store. */
const ofTheStart = ['dk_1', 'dk_4'];
const options = { startsWith: installation };

async function filled(): Promise<MemoryDataKeyStore> {
  const store = createMemoryDataKeyStore();
  for (const keyId of keyIds) {
    const resource = ofTheStart.includes(keyId) ? installation : `resource of ${keyId}`;
    await store.put(keyId, wrapDataKey(old, keyId, resource, newDataKey()));
  }
  return store;
}

/** The same store, for a process that is killed at its write number `writes`. */
function dyingAt(store: MemoryDataKeyStore, writes: number): MemoryDataKeyStore {
  let left = writes;
  return {
    ...store,
    async put(keyId, wrapped) {
      left -= 1;
      if (left < 0) throw new Error('killed');
      await store.put(keyId, wrapped);
    },
  };
}

const opens = (store: MemoryDataKeyStore, key: MasterKey, ids: readonly string[]): boolean =>
  ids.every((keyId) => unwrapDataKey(key, keyId, store.entries.get(keyId)!) !== undefined);

const allWrites = 2 * keyIds.length;

describe.each(Array.from({ length: allWrites + 1 }, (_, writes) => writes))('after %i writes', (writes) => {
  it('one of the two keys opens every data key, and a start succeeds with such a key only', async () => {
    const store = await filled();
    const interrupted = rewrapDataKeys(dyingAt(store, writes), old, next, options);
    if (writes < allWrites) await expect(interrupted).rejects.toThrow('killed');
    else expect(await interrupted).toEqual({ ok: true, value: { rewrapped: 6, kept: 0 } });
    const all = [old, next].map((key) => opens(store, key, keyIds));
    expect(all).toEqual([writes <= keyIds.length, writes >= keyIds.length]);
    expect([old, next].map((key) => opens(store, key, ofTheStart))).toEqual(all);

    // A service that was started with the old key meanwhile has made another data key.
    const made = writes < keyIds.length ? ['dk_6'] : [];
    for (const keyId of made) await store.put(keyId, wrapDataKey(old, keyId, 'made meanwhile', newDataKey()));
    const again = await rewrapDataKeys(store, old, next, options);
    expect(again).toMatchObject({ ok: true, value: { kept: Math.min(writes, keyIds.length) } });
    for (const keyId of [...keyIds, ...made]) {
      expect([old, next].map((key) => opens(store, key, [keyId]))).toEqual([false, true]);
      expect(store.entries.get(keyId)).not.toHaveProperty('next');
    }
  });
});

it('tells when both keys open every data key', async () => {
  const store = await filled();
  const told: boolean[][] = [];
  const openByBoth = async (): Promise<void> => void told.push([old, next].map((key) => opens(store, key, keyIds)));
  await rewrapDataKeys(store, old, next, { ...options, openByBoth });
  expect(told).toEqual([[true, true]]);
});

it('is finished with the new key alone once that opens every data key', async () => {
  const store = await filled();
  await expect(rewrapDataKeys(dyingAt(store, keyIds.length + 3), old, next, options)).rejects.toThrow('killed');
  expect(await dropOtherWraps(store, next)).toBe(keyIds.length - 3);
  expect(opens(store, next, keyIds)).toBe(true);
  for (const keyId of keyIds) expect(opens(store, old, [keyId])).toBe(false);
  expect(await dropOtherWraps(store, next)).toBe(0);
});

it('goes on to a third key after a start with the second', async () => {
  const store = await filled();
  await expect(rewrapDataKeys(dyingAt(store, keyIds.length + 3), old, next, options)).rejects.toThrow('killed');
  const third = createMasterKey(randomBytes(32));
  expect(await rewrapDataKeys(store, next, third, options)).toEqual({ ok: true, value: { rewrapped: 6, kept: 0 } });
  expect(opens(store, third, keyIds)).toBe(true);
  for (const keyId of keyIds) expect([old, next].some((key) => opens(store, key, [keyId]))).toBe(false);
});
