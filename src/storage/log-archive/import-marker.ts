/**
 * The marker that an import leaves in the read store before it writes anything: of which archive, and whether the
 * import is complete. A service must not start on half a log, because it would write to it.
 */
import type { ReadStore } from '../read-store.js';

export interface ImportMarker {
  readonly archiveId: string;
  readonly state: 'running' | 'done';
}

type MarkerFields = { readonly archive_id: string; readonly state: 'running' | 'done' };

const spec = { name: 'log_imports', version: 1, indexes: [] } as const;
const id = 'import';

/** The marker of the last import, undefined when there was none. @throws ServiceError `unavailable` */
export async function readImportMarker(readStore: ReadStore): Promise<ImportMarker | undefined> {
  const collection = await readStore.collection<MarkerFields>(spec);
  const marker = await collection.get(id);
  return marker === undefined ? undefined : { archiveId: marker.fields.archive_id, state: marker.fields.state };
}

export async function writeImportMarker(readStore: ReadStore, { archiveId, state }: ImportMarker): Promise<void> {
  const collection = await readStore.collection<MarkerFields>(spec);
  await collection.set([{ id, fields: { archive_id: archiveId, state } }]);
}
