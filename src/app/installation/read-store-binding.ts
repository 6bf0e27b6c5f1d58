/**
 * Binds a read store to one installation, by a document that its first start writes: two installations on one read store
 * would mix their read models. The document also shows when a store was emptied. Implements
 * `docs/contract/domain.md#commands-and-events`, the read store is disposable.
 */
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { readEvent } from '../../domain/log/upcast.js';
import { serviceEvent } from '../../domain/service/identity.js';
import { startLoop, type Loop } from '../../kernel/background.js';
import { streams } from '../../kernel/event.js';
import { firstFrom, type EventStore } from '../../storage/event-store.js';
import { ownEvent } from '../../storage/broken-log.js';
import type { Collection, ReadStore } from '../../storage/read-store.js';

type Binding = {
  readonly installation_id: string;
  /** Created with the document, so a store that is emptied and refilled has a new one. */
  readonly store_id: string;
};

const id = 'installation';
/** An instance must be unready within 10 s of its read store being emptied. */
const watchEveryMs = 2_000;

const open = (readStore: ReadStore): Promise<Collection<Binding>> =>
  readStore.collection<Binding>({ name: 'installations', version: 1 });

/** A sentence for the operator of a read store that does not belong to the log. */
export const remedyFor = (dataDir: string): string =>
  `The read store does not belong to this log: empty it (delete ${join(dataDir, 'read')}, or drop the database) and start again.`;

/** The id of the log's installation; undefined before a service started on it. @throws ServiceError `unavailable` */
export async function installationOf(eventStore: Pick<EventStore, 'read'>): Promise<string | undefined> {
  const event = await firstFrom(eventStore, streams.service, 'start');
  return event === undefined ? undefined : serviceEvent(readEvent(ownEvent(event))).data.installation_id;
}

/**
 * Whether the two stores belong to different installations. Writes nothing.
 * @returns a sentence for the operator, without its remedy, or undefined
 * @throws ServiceError `unavailable`
 */
export async function ofAnotherInstallation(eventStore: EventStore, readStore: ReadStore): Promise<string | undefined> {
  const bound = (await (await open(readStore)).get(id))?.fields.installation_id;
  if (bound === undefined) return undefined;
  const own = await installationOf(eventStore);
  if (own === bound) return undefined;
  const log =
    own === undefined
      ? 'a log on which no service has started (where a log was lost, restore a backup of it first)'
      : `the log of ${own}`;
  return `the read store belongs to installation ${bound}, beside ${log}`;
}

export interface BoundReadStore extends ReadStore {
  /** Changes when the store is emptied and refilled. */
  readonly id: string | undefined;
}

/** Binds a read store that is not bound. The caller then checks whose it is. @throws ServiceError `unavailable` */
export async function bindReadStore(readStore: ReadStore, installationId: string): Promise<BoundReadStore> {
  await (await open(readStore)).insert([{ id, fields: { installation_id: installationId, store_id: randomUUID() } }]);
  return asBound(readStore);
}

/**
 * The read store with its own checkpoints: an instance that has not noticed the emptying may still save one, and
 * whoever refills the store must not mistake that for its own. @throws ServiceError `unavailable`
 */
export async function asBound(readStore: ReadStore): Promise<BoundReadStore> {
  const storeId = (await (await open(readStore)).get(id))?.fields.store_id;
  const named = (projection: string): string => (storeId === undefined ? projection : `${projection}@${storeId}`);
  return {
    ...readStore,
    id: storeId,
    loadCheckpoint: (projection, version) => readStore.loadCheckpoint(named(projection), version),
    saveCheckpoint: (projection, version, checkpoint) =>
      readStore.saveCheckpoint(named(projection), version, checkpoint),
    deleteCheckpoint: (projection, version) => readStore.deleteCheckpoint(named(projection), version),
  };
}

/** Calls back once when the read store has been emptied, refilled or not. @throws ServiceError `unavailable` */
export async function watchReadStore(
  readStore: BoundReadStore,
  onEmptied: () => void,
  everyMs = watchEveryMs,
): Promise<Pick<Loop, 'close'>> {
  const collection = await open(readStore);
  let told = false;
  return startLoop(
    everyMs,
    async () => {
      if (told || (await collection.get(id))?.fields.store_id === readStore.id) return;
      told = true;
      onEmptied();
    },
    // Store health reports that it is away.
    () => undefined,
  );
}
