/**
 * Binds a read store to one installation: a document that its first start writes. Two installations on one read store,
 * for example two EventStoreDB clusters with one MongoDB database, would mix their read models. A read
 * store of a release that did not bind it is bound by the next start.
 */
import { readEvent } from '../domain/log/upcast.js';
import { serviceEvent } from '../domain/service/identity.js';
import { streams } from '../kernel/event.js';
import type { EventStore } from '../storage/event-store.js';
import { firstFrom } from '../storage/event-store.js';
import type { Collection, ReadStore } from '../storage/read-store.js';

type BindingFields = { readonly installation_id: string };

const id = 'installation';

const open = (readStore: ReadStore): Promise<Collection<BindingFields>> =>
  readStore.collection<BindingFields>({ name: 'installations', version: 1, indexes: [] });

/** The id of the log's installation; undefined before a service has started on it. @throws ServiceError `unavailable` */
export async function installationOf(eventStore: EventStore): Promise<string | undefined> {
  const event = await firstFrom(eventStore, streams.service, 'start');
  return event === undefined ? undefined : serviceEvent(readEvent(event)).data.installation_id;
}

/**
 * Whether the two stores are of different installations. Writes nothing.
 * @returns one sentence for the operator, or undefined
 * @throws ServiceError `unavailable`
 */
export async function ofAnotherInstallation(eventStore: EventStore, readStore: ReadStore): Promise<string | undefined> {
  const bound = (await (await open(readStore)).get(id))?.fields.installation_id;
  if (bound === undefined) return undefined;
  const own = await installationOf(eventStore);
  if (own === bound) return undefined;
  const [log, remedy] =
    own === undefined ? ['that of none', 'an empty read store'] : [`that of ${own}`, `the read store of ${own}`];
  return (
    `The read store is that of installation ${bound}, and the event log ${log}: a service on both would mix ` +
    `installations. Use the event log of ${bound} with this read store, or ${remedy} with this event log.`
  );
}

/** Binds an unbound read store. The caller then looks whose it is. @throws ServiceError `unavailable` */
export async function bindReadStore(readStore: ReadStore, installationId: string): Promise<void> {
  await (await open(readStore)).insert(id, { installation_id: installationId });
}
