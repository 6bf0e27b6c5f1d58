/**
 * Detects read models that come from another log: an older log was restored beside them. Their documents carry
 * positions that this log has not reached, or reached with other events, so its new events would be taken for old ones
 * and left out. Told by the position of the checkpoint and by its anchors (`anchors.ts`). Implements `docs/architecture.md#read-models`.
 */
import { isBeyond } from '../../storage/event-store.js';
import type { EventStore } from '../../storage/event-store.js';
import type { ReadStore } from '../../storage/read-store.js';
import { differenceFrom, restoredBeside } from './anchors.js';
import { placeOf, readLayout } from './layout.js';
import { groupName, groupVersion } from '../read-models.js';

/**
 * @returns a sentence without its end when the read models in use hold what the log does not, else undefined
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
  if (isBeyond(checkpoint, head)) {
    return restoredBeside(`the read models hold the log up to position ${checkpoint.commit}, but it ends at ${head}`);
  }
  const difference = await differenceFrom(eventStore, checkpoint.anchors);
  return difference === undefined ? undefined : restoredBeside(difference.text);
}
