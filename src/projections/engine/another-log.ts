/**
 * Detects read models that come from another log: an older log was restored beside them. Their documents carry
 * positions that this log has not reached, so its new events would be taken for old ones and left out. This protects
 * the first start after a restore only: once the log has grown past the checkpoint, the two cannot be told apart.
 * Implements `docs/architecture.md#read-models`.
 */
import { isBeyond } from '../../storage/event-store.js';
import type { EventStore } from '../../storage/event-store.js';
import type { ReadStore } from '../../storage/read-store.js';
import { placeOf, readLayout } from './layout.js';
import { groupName, groupVersion } from '../read-models.js';

/**
 * @returns a sentence when the read models in use hold more than the log, else undefined
 * @param release version of the release's read models; tests pass another
 * @throws ServiceError `unavailable`
 */
export async function ofAnotherLog(
  eventStore: EventStore,
  readStore: ReadStore,
  release: number = groupVersion,
): Promise<string | undefined> {
  const { number } = await readLayout(readStore, release);
  // The checkpoint is read before the head, because another instance may be moving both.
  const checkpoint = await readStore.loadCheckpoint(groupName, placeOf(release, number));
  if (checkpoint === undefined) return undefined;
  const head = await eventStore.headPosition();
  if (!isBeyond(checkpoint, head)) return undefined;
  return (
    `the read models hold the log up to position ${checkpoint.commit}, but it ends at ${head}: an older log was ` +
    'restored beside newer read models'
  );
}
