/** Which writes of the embedded read store wait for the flush of the meta page, and what becomes of them when it fails. */
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { systemClock } from '../../src/kernel/clock.js';
import type { MetaFlush } from '../../src/storage/embedded/data-file.js';
import type { Collection, CollectionSpec } from '../../src/storage/read-store.js';
import { openTemporaryStores, type TemporaryStores } from '../support/temporary-stores.js';

const disk = vi.hoisted(() => ({ flushes: 0, failing: false }));
vi.mock(import('../../src/storage/embedded/data-file.js'), async (original) => {
  const { createMetaFlush, ...others } = await original();
  return {
    ...others,
    createMetaFlush(path: string): MetaFlush {
      const inner = createMetaFlush(path);
      return {
        ...inner,
        async flush() {
          disk.flushes += 1;
          if (disk.failing) throw new Error('EIO: i/o error, fdatasync');
          await inner.flush();
        },
      };
    },
  };
});

const spec: CollectionSpec = { name: 'seen', version: 1 };
let stores: TemporaryStores;
let seen: Collection;

beforeEach(async () => {
  stores = await openTemporaryStores(systemClock);
  seen = await stores.readStore.collection(spec);
  Object.assign(disk, { flushes: 0, failing: false });
});
afterEach(async () => {
  disk.failing = false;
  await stores.close();
});

const put = (id: string, position: number): Promise<void> => seen.write([{ id, position, fields: { n: position } }]);

it('documents that a projection writes are visible before their flush', async () => {
  await put('a', 1);
  expect((await seen.get('a'))?.fields).toEqual({ n: 1 });
  expect(disk.flushes).toBe(0);
});

it('every other write waits for its flush, once for all that share a commit', async () => {
  const { readStore } = stores;
  const flushesOf = async (write: () => Promise<unknown>): Promise<number> => {
    const before = disk.flushes;
    await write();
    return disk.flushes - before;
  };
  const keys = Array.from({ length: 40 }, (_, n) => seen.set([{ id: `key-${n}`, fields: { n } }]));
  const together = await flushesOf(() => Promise.all([put('a', 1), ...keys]));
  expect(together).toBeGreaterThan(0);
  expect(together).toBeLessThan(keys.length / 2);
  expect(await flushesOf(() => seen.insert([{ id: 'only', fields: { n: 1 } }]))).toBe(1);
  expect(await flushesOf(() => readStore.saveCheckpoint('models', 1, { commit: 1, prepare: 1, anchors: [] }))).toBe(1);
  expect(await flushesOf(() => readStore.activate('models', 1))).toBe(1);
  expect(await flushesOf(() => seen.remove(['only']))).toBe(1);
  expect(await flushesOf(() => readStore.drop('seen', 1))).toBeGreaterThan(0);
});

it('a write whose flush fails is not acknowledged, and the next one that succeeds answers for it', async () => {
  disk.failing = true;
  const key = { id: 'key', fields: { k: 1 } };
  await expect(seen.set([key])).rejects.toMatchObject({ code: 'unavailable' });
  await expect(stores.readStore.ping()).rejects.toMatchObject({ code: 'unavailable' });
  // It is visible, and so changes nothing; still it is not said to be durable.
  await expect(seen.insert([key])).rejects.toMatchObject({ code: 'unavailable' });
  disk.failing = false;
  expect(await seen.insert([key])).toEqual([]);
  await stores.readStore.ping();
  stores = await stores.reopened();
  expect((await (await stores.readStore.collection(spec)).get('key'))?.fields).toEqual(key.fields);
});

it('a store that is closed has flushed all that was visible', async () => {
  await put('a', 1);
  await stores.close();
  expect(disk.flushes).toBe(1);
});
