/**
 * Whether the read models come from another log than the one that is there: an older log was restored beside them. Their
 * documents carry positions that this log has not reached, so what it says now would be taken for old and left out.
 * A guard for the first start after a restore: once the log has grown past the checkpoint nothing tells them apart.
 * Implements `docs/architecture.md` (projections: a write applies only above the position that a document carries).
 */
import type { EventStore } from '../../storage/event-store.js';
import type { ReadStore } from '../../storage/read-store.js';
import { placeOf, readLayout } from './layout.js';
import { groupName, groupVersion } from '../read-models.js';

/**
 * A sentence when the read models that are shown hold more than the log, else undefined.
 * @param release version of the release's read models; for tests
 * @throws ServiceError `unavailable`
 */
export async function ofAnotherLog(
  eventStore: EventStore,
  readStore: ReadStore,
  release: number = groupVersion,
): Promise<string | undefined> {
  const { number } = await readLayout(readStore, release);
  // The checkpoint before the head: another instance may be writing both.
  const checkpoint = await readStore.loadCheckpoint(groupName, placeOf(release, number));
  if (checkpoint === undefined) return undefined;
  const head = await eventStore.headPosition();
  if (checkpoint.commit <= head) return undefined;
  return (
    `the read models hold the log up to position ${checkpoint.commit}, but it ends at ${head}: an older log was ` +
    'restored beside newer read models'
  );
}
