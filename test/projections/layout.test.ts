/** The layout: which collection each read model is read from, before and after rebuilds. */
import { describe, expect, it } from 'vitest';
import { placeOf, readLayoutRecord, versionIn, writeLayoutRecord } from '../../src/projections/engine/layout.js';
import type { ReadStore } from '../../src/storage/read-store.js';
import { collectionOf } from '../support/documents-in-memory.js';

describe('the layout', () => {
  it('is that of the release before the first rebuild, and what was written afterwards', async () => {
    const { collection } = collectionOf();
    const store = { collection: async () => collection } as unknown as ReadStore;
    expect(await readLayoutRecord(store, 3)).toEqual({
      layout: { number: 0, places: new Map() },
      filling: undefined,
      leftovers: [],
    });
    const record = {
      layout: { number: 2, places: new Map([['nodes', 30_002]]) },
      filling: { number: 3, only: 'nodes' },
      leftovers: [{ number: 1, collections: [{ name: 'nodes', version: 30_001 }] }],
    };
    await writeLayoutRecord(store, 3, record);
    expect(await readLayoutRecord(store, 3)).toEqual(record);
    expect((await readLayoutRecord(store, 4)).layout.number).toBe(0);
    await writeLayoutRecord(store, 3, { ...record, filling: undefined });
    expect((await readLayoutRecord(store, 3)).filling).toBeUndefined();
    expect([versionIn(record.layout, 3, 'nodes'), versionIn(record.layout, 3, 'chains')]).toEqual([30_002, 3]);
  });

  it('has a place of its own for each rebuild of a release', () => {
    expect([placeOf(3, 0), placeOf(3, 1), placeOf(3, 9_999), placeOf(4, 1)]).toEqual([3, 30_001, 39_999, 40_001]);
  });
});
