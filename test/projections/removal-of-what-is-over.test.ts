/** What the read side removes by and by: tombstones that all have passed, and documents whose time is over. */
import { describe, expect, it } from 'vitest';
import { silentLogger } from '../../src/kernel/logger.js';
import { removeExpired, startRemovals, createPurge } from '../../src/projections/engine/removals.js';
import type { ReadModel } from '../../src/projections/read-model.js';
import { tuning } from '../../src/projections/tuning.js';
import type { Fields, ReadStore } from '../../src/storage/read-store.js';
import { collectionOf } from '../support/documents-in-memory.js';
import { eventually } from '../support/eventually.js';

describe('the purge of tombstones', () => {
  interface Turn {
    /** The time that deletes go by, in hours: a day after the turn before, unless it is said. */
    readonly at?: number | 'unknown';
    readonly checkpoint?: number;
    readonly leases: readonly unknown[];
  }
  function purge(turns: readonly Turn[]) {
    const one = collectionOf();
    const other = collectionOf();
    let turn = -1;
    const run = createPurge({
      readStore: {
        leases: {
          list: async (kind: string) => {
            expect(kind).toBe('instances');
            turn += 1;
            return (turns[turn]?.leases ?? []).map((data) => ({ data }));
          },
        },
      } as unknown as ReadStore,
      deletionTime() {
        const { at = 24 * (turn + 1) } = turns[turn + 1] ?? {};
        return at === 'unknown' ? undefined : at * 3_600_000;
      },
      checkpoint: async () => turns[turn]?.checkpoint,
      collections: () => [one.collection, other.collection],
    });
    return { run, calls: one.calls };
  }

  it('removes what every live instance and the checkpoint had passed a day before', async () => {
    const { run, calls } = purge([
      { checkpoint: 9, leases: [{ position: 7 }, { position: 8 }] },
      { checkpoint: 6, leases: [{ position: 8 }] },
      { checkpoint: 9, leases: [{ position: 9 }] },
    ]);
    expect([await run(), await run(), await run()]).toEqual([0, 4, 4]);
    expect(calls).toEqual([7, 6]);
  });

  it('keeps a tombstone for a day by the clock that all deletes go by, and does nothing while that is not known', async () => {
    const at = (hours: number | 'unknown', position = 9): Turn => ({
      at: hours,
      checkpoint: 9,
      leases: [{ position }],
    });
    const turns = [at('unknown'), at(100, 7), at(100.5, 8), at(123.9), at('unknown'), at(124), at(124.5), at(147.9)];
    const { run, calls } = purge(turns);
    const removed = [];
    for (const _ of turns) removed.push(await run());
    expect(removed).toEqual([0, 0, 0, 0, 0, 4, 0, 4]);
    expect(calls, 'what was noted at 100 and at 123.9').toEqual([7, 9]);
  });

  it.each<[string, { readonly checkpoint?: number; readonly leases: readonly unknown[] }]>([
    ['there is no checkpoint', { leases: [{ position: 7 }] }],
    ['no instance is live', { checkpoint: 9, leases: [] }],
    ['an instance does not say how far it is', { checkpoint: 9, leases: [{ position: 7 }, { other: 1 }] }],
    ['an instance says nothing', { checkpoint: 9, leases: [null, { position: 7 }] }],
    ['an instance says what is no number', { checkpoint: 9, leases: [{ position: '7' }] }],
    ['an instance says a text', { checkpoint: 9, leases: ['position'] }],
  ])('removes nothing when %s', async (_name, unknown) => {
    const { run, calls } = purge([unknown, unknown]);
    expect([await run(), await run(), calls]).toEqual([0, 0, []]);
  });
});

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
      'old things',
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
      { error: expect.stringContaining('away'), text: 'old things could not be removed' },
      { removed: 7, text: 'old things removed' },
    ]);
  });
});
