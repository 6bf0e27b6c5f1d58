/** Parked entities: stored before they count, known after a restart, and bounded. */
import { describe, expect, it } from 'vitest';
import { openParking, parkedCollection } from '../../src/projections/engine/parked.js';
import { ProjectionsStopped } from '../../src/projections/engine/fold.js';
import type { ParkedEntity } from '../../src/projections/port.js';
import { tuning } from '../../src/projections/tuning.js';
import type { Collection, ReadStore } from '../../src/storage/read-store.js';
import { collectionOf } from '../support/documents-in-memory.js';

describe('parked entities', () => {
  const entity = (id: string): ParkedEntity => ({ projection: 'nodes', id, position: 4, error: 'a bug' });
  const storeOf = (collection: Collection, opened: object[] = []): ReadStore =>
    ({
      async collection(spec: object) {
        opened.push(spec);
        return collection;
      },
    }) as unknown as ReadStore;

  it('are in a collection of their own for each version of the read models, and all of them are loaded', async () => {
    const { collection, calls } = collectionOf();
    const opened: object[] = [];
    await openParking(storeOf(collection, opened), 3);
    expect(opened).toEqual([{ name: parkedCollection, version: 3 }]);
    expect(calls).toEqual([{ after: undefined, limit: tuning.parkedEntities }]);
  });

  it('are stored before they count, and known after a restart', async () => {
    const { collection, calls } = collectionOf();
    const parking = await openParking(storeOf(collection), 3);
    expect([parking.has('nodes', 'n1'), parking.list()]).toEqual([false, []]);
    await parking.add([entity('n1')]);
    expect([parking.has('nodes', 'n1'), parking.has('nodes', 'n2'), parking.has('chains', 'n1')]).toEqual([
      true,
      false,
      false,
    ]);
    const fields = { projection: 'nodes', entity: 'n1', position: 4, error: 'a bug' };
    expect(calls.slice(1)).toEqual([{ id: 'nodes/n1', position: 4, fields }]);
    const later = await openParking(storeOf(collectionOf([{ id: 'nodes/n1', fields }]).collection), 3);
    expect(later.list()).toEqual([entity('n1')]);
  });

  it('are not parked when that is not stored, or when they are too many to be single faults', async () => {
    const { collection } = collectionOf();
    const failing = { ...collection, write: () => Promise.reject(new Error('away')) } as unknown as Collection;
    const parking = await openParking(storeOf(failing), 3);
    await expect(parking.add([entity('n1')])).rejects.toThrow('away');
    expect(parking.list()).toEqual([]);
    const full = await openParking(storeOf(collectionOf().collection), 3);
    const many = Array.from({ length: tuning.parkedEntities }, (_, index) => entity(`n${index}`));
    await full.add(many);
    await expect(full.add([entity('one more')])).rejects.toBeInstanceOf(ProjectionsStopped);
    expect(full.list()).toHaveLength(tuning.parkedEntities);
  });
});
