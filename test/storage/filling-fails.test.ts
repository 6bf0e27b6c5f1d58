/** Indexes that cannot be filled, because the store refuses writes, fail their caller and nothing else. */
import { expect, it } from 'vitest';
import { fillIndexes, startGathering } from '../../src/storage/embedded/read/fill-indexes.js';
import type { ReadBatch, ReadEnvironment, RunWrite } from '../../src/storage/embedded/read/layout.js';
import { tuning } from '../../src/storage/embedded/tuning.js';

it('a write of index entries that fails is told to the caller, also while the next one is under way', async () => {
  const unhandled: unknown[] = [];
  const note = (error: unknown): void => void unhandled.push(error);
  process.on('unhandledRejection', note);
  const filling = startGathering('indexes.0', [], 1);
  const keys = Array.from({ length: 3 * tuning.bulkChanges }, (_, index) => `key ${index}`);
  filling.gathered.add(
    keys,
    keys.map(() => 'key'),
  );
  let refused = 0;
  const run: RunWrite = async (operation, options) => {
    if (options?.bulk !== true) return operation({} as ReadBatch);
    await new Promise(setImmediate);
    refused += 1;
    throw new Error('the disk is full');
  };
  const environment = { entries: () => [] } as unknown as ReadEnvironment;
  await expect(fillIndexes(environment, run, filling, 1)).rejects.toThrow('the disk is full');
  for (let turn = 0; turn < 3; turn += 1) await new Promise(setImmediate);
  process.off('unhandledRejection', note);
  expect(refused).toBe(2);
  expect(unhandled).toEqual([]);
});
