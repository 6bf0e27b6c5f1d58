/**
 * Entities that an event could not be applied to: taken out, loudly, while all others go on. Kept in the read store,
 * guarded like every document, so that a restart or another instance does not go on with an entity that lacks an event.
 * A version raise, with a fold that can take the event, begins without them. Part of `docs/architecture.md`, projections.
 */
import type { Collection, GuardedWrite, ReadStore } from '../../storage/read-store.js';
import type { ParkedEntity } from '../port.js';
import { ProjectionsStopped } from './stopped.js';
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
  /** Durable when it returns; nothing changes when it fails. @throws ProjectionsStopped when too many are parked */
  add(entities: readonly ParkedEntity[]): Promise<void>;
}

/** Name of the collection; its version is that of the layout. */
export const parkedCollection = 'parked_entities';

const keyOf = (projection: string, id: string): string => `${projection}/${id}`;

export async function openParking(store: ReadStore, version: number): Promise<Parking> {
  const collection: Collection<ParkedFields> = await store.collection({
    name: parkedCollection,
    version,
    indexes: [],
  });
  const { items } = await collection.find({ limit: tuning.parkedEntities });
  const parked = new Map<string, ParkedEntity>(
    items.map(({ id, fields: { projection, entity, position, error } }) => [
      id,
      { projection, id: entity, position, error },
    ]),
  );
  return {
    has: (projection, id) => parked.size > 0 && parked.has(keyOf(projection, id)),
    list: () => [...parked.values()],
    async add(entities) {
      if (parked.size + entities.length > tuning.parkedEntities) {
        throw new ProjectionsStopped(
          `more than ${tuning.parkedEntities} entities would be parked: the fault is not theirs`,
        );
      }
      const writes = entities.map(({ projection, id, position, error }): GuardedWrite<ParkedFields> => ({
        kind: 'put',
        id: keyOf(projection, id),
        position,
        fields: { projection, entity: id, position, error },
      }));
      await collection.write(writes);
      for (const entity of entities) parked.set(keyOf(entity.projection, entity.id), entity);
    },
  };
}
