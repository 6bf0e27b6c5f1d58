/** What the read side removes by and by: documents whose time is over. */
import { describe, expect, it } from 'vitest';
import { silentLogger } from '../../src/kernel/logger.js';
import { removeExpired, startRemovals } from '../../src/projections/engine/removals.js';
import type { ReadModel } from '../../src/projections/read-model.js';
import { tuning } from '../../src/projections/tuning.js';
import type { Fields } from '../../src/storage/read-store.js';
import { collectionOf } from '../support/documents-in-memory.js';
import { eventually } from '../support/eventually.js';

describe('what has expired', () => {
  const documents = (count: number) =>
    Array.from({ length: count }, (_, index) => ({ id: `d${index}`, fields: {} as Fields }));
  const model = (name: string, expired?: ReadModel['expired']): ReadModel =>
    ({ name, keys: () => [], evolve: () => undefined, ...(expired && { expired }) }) as ReadModel;

  it('is removed in slices, from the read models whose documents expire', async () => {
    const own = collectionOf(documents(2 * tuning.expiredDocuments));
    const forever = collectionOf(documents(3));
    const removed = await removeExpired({
      models: [
        model('own', (now) => ({ groups: ['own'], below: `${now}` })),
        model('forever'),
        model('absent', () => ({ groups: ['absent'] })),
      ],
      collections: new Map([
        ['own', own.collection],
        ['forever', forever.collection],
      ]),
      deletionTime: () => 77,
    });
    expect([removed, own.documents.size, forever.documents.size]).toEqual([2000, 0, 3]);
    // The last look finds nothing, and nothing is asked to be removed.
    expect(own.removed).toEqual([tuning.expiredDocuments, tuning.expiredDocuments]);
    expect(own.calls).toEqual(
      Array(3).fill({ groups: ['own'], below: '77', direction: 'asc', limit: tuning.expiredDocuments }),
    );
  });
});

it('nothing that has expired is removed while no time is known to go by', async () => {
  const { collection, calls } = collectionOf();
  const model = { name: 'own', keys: () => [], evolve: () => undefined, expired: () => ({ groups: ['own'] }) };
  const collections = new Map([['own', collection]]);
  expect(await removeExpired({ models: [model], collections, deletionTime: () => undefined })).toBe(0);
  expect(calls).toEqual([]);
});

describe('the loop of removals', () => {
  it('goes on after a failure, which is told once, and says how many it removed, if any', async () => {
    const told: unknown[] = [];
    const logger = {
      ...silentLogger,
      debug: (fields: object, text: string) => void told.push({ ...fields, text }),
      warn: (fields: object, text: string) => void told.push({ ...fields, text }),
    };
    const turns = [0, new Error('away'), new Error('away again'), 0, 7];
    const loop = startRemovals(
      1,
      async () => {
        const turn = turns.shift() ?? 0;
        if (typeof turn !== 'number') throw turn;
        return turn;
      },
      logger,
    );
    await eventually(() => turns.length).toBe(0);
    await loop.close();
    expect(told).toEqual([
      { error: expect.stringContaining('away'), text: 'expired documents could not be removed' },
      { removed: 7, text: 'expired documents removed' },
    ]);
  });
});
