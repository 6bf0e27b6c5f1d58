/**
 * Parked entities: an event could not be applied to them, so they are left out of their read model. They are stored, so that
 * neither a restart nor another instance projects an entity that lacks an event. A raised version starts without them. Part of
 * `docs/architecture.md#read-models`.
 */
import type { Collection, ReadStore } from '../../storage/read-store.js';
import type { ParkedEntity } from '../port.js';
import { ProjectionsStopped } from './fold.js';
import { tuning } from '../tuning.js';

type ParkedFields = {
  readonly projection: string;
  readonly entity: string;
  readonly position: number;
  readonly error: string;
};

export interface Parking {
  has(projection: string, id: string): boolean;
  list(): readonly ParkedEntity[];
  /** Durable when it returns; nothing changes when it throws. @throws ProjectionsStopped when too many are parked */
  add(entities: readonly ParkedEntity[]): Promise<void>;
}

/** Name of the collection; its version is the layout's place. */
export const parkedCollection = 'parked_entities';

const keyOf = (projection: string, id: string): string => `${projection}/${id}`;

export async function openParking(store: ReadStore, version: number): Promise<Parking> {
  const collection: Collection<ParkedFields> = await store.collection({
    name: parkedCollection,
    version,
  });
  const items = await collection.list(undefined, tuning.parkedEntities);
  const parked = new Map<string, ParkedEntity>(
    items.map(({ id, fields: { projection, entity, position, error } }) => [
      id,
      { projection, id: entity, position, error },
    ]),
  );
  let list = [...parked.values()];
  return {
    has: (projection, id) => parked.size > 0 && parked.has(keyOf(projection, id)),
    list: () => list,
    async add(entities) {
      if (parked.size + entities.length > tuning.parkedEntities) {
        throw new ProjectionsStopped(
          `more than ${tuning.parkedEntities} entities would be parked: the fault is not in single entities`,
        );
      }
      const writes = entities.map(({ projection, id, position, error }) => ({
        id: keyOf(projection, id),
        position,
        fields: { projection, entity: id, position, error },
      }));
      await collection.write(writes);
      for (const entity of entities) parked.set(keyOf(entity.projection, entity.id), entity);
      list = [...parked.values()];
    },
  };
}
