/**
 * The note that an import leaves in the read store before it writes anything: whether what a store holds is half of an
 * import, and of which archive. A service must not start on half a log: it would write into it.
 */
import type { ReadStore } from '../read-store.js';

export interface ImportMarker {
  readonly archiveId: string;
  readonly state: 'running' | 'done';
}

type MarkerFields = { readonly archive_id: string; readonly state: 'running' | 'done' };

const spec = { name: 'log_imports', version: 1, indexes: [] } as const;
const id = 'import';

/** Of the last import into this store, undefined when there was none. @throws ServiceError `unavailable` */
export async function readImportMarker(readStore: ReadStore): Promise<ImportMarker | undefined> {
  const collection = await readStore.collection<MarkerFields>(spec);
  const found = await collection.get(id);
  return found === undefined ? undefined : { archiveId: found.fields.archive_id, state: found.fields.state };
}

export async function writeImportMarker(readStore: ReadStore, { archiveId, state }: ImportMarker): Promise<void> {
  const collection = await readStore.collection<MarkerFields>(spec);
  await collection.set([{ id, fields: { archive_id: archiveId, state } }]);
}
