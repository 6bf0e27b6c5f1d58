/**
 * Detects read models of another log, such as when an older log was restored beside them: new events would be skipped
 * as already applied. A position does not show this once the log has grown, so the checkpoint keeps two anchors: the
 * last event that the read models hold, and the last one that never expires. Implements
 * `docs/architecture.md#read-models`.
 */
import { ServiceError } from '../../kernel/errors.js';
import { expires, lastEvent, type RecordedCommand } from '../../kernel/event.js';
import { firstFrom, isBeyond, type EventStore } from '../../storage/event-store.js';
import { BrokenLogError } from '../../storage/broken-log.js';
import type { Anchor, ReadStore } from '../../storage/read-store.js';
import { groupName, groupVersion } from '../read-models.js';
import { placeOf, readLayout } from './layout.js';

export interface Anchors {
  /** The read models hold these commands. */
  note(commands: readonly RecordedCommand[]): void;
  current(): readonly Anchor[];
}

/** @param stored the anchors of the checkpoint, if any */
export function createAnchors(stored: readonly Anchor[] = []): Anchors {
  let last = stored.at(-1);
  let standing = stored.find(({ stream }) => !expires(stream));
  return {
    note(commands) {
      for (const command of commands) {
        const { stream, revision, id } = lastEvent(command);
        last = { stream, revision, id };
        if (!expires(stream)) standing = last;
      }
    },
    current: () => [...new Set([standing, last])].flatMap((anchor) => anchor ?? []),
  };
}

interface Difference {
  /** False when the log only lacks an event: a lagging server lacks it too. */
  readonly certain: boolean;
  /** The events that only the read models know, as the beginning of a sentence. */
  readonly text: string;
}

/** How a log differs from the log of the anchors; undefined if it does not seem to. @throws ServiceError `unavailable` */
export async function differenceFrom(
  eventStore: EventStore,
  anchors: readonly Anchor[],
): Promise<Difference | undefined> {
  for (const { stream, revision, id } of anchors) {
    const held = `the read models hold revision ${revision} of ${stream}`;
    const found = await firstFrom(eventStore, stream, revision);
    if (found?.revision !== revision) {
      // It may have expired.
      if (!expires(stream)) return { certain: false, text: `${held}, which this log lacks` };
    } else if (found.id !== id) {
      return { certain: true, text: `${held} as event ${id}, but it is ${found.id} here` };
    }
  }
  return undefined;
}

/** The message is a sentence for the operator. */
export class AnotherLogError extends BrokenLogError {}

/** The sentence about a difference, without a full stop. */
const restoredBeside = (text: string): string => `${text}: an older log was restored beside newer read models`;

/** A log whose subscriptions start only while it matches the anchors. */
export function anchored(eventStore: EventStore, anchors: Anchors): EventStore {
  return {
    ...eventStore,
    async *subscribe(options) {
      const difference = await differenceFrom(eventStore, anchors.current());
      if (difference?.certain === true) throw new AnotherLogError(restoredBeside(difference.text));
      if (difference !== undefined) throw new ServiceError('unavailable', difference.text);
      yield* eventStore.subscribe(options);
    },
  };
}

/**
 * @returns a sentence without a full stop when the read models in use are from another log, else undefined
 * @param release version of the release's read models; tests pass another
 * @throws ServiceError `unavailable`
 */
export async function ofAnotherLog(
  eventStore: EventStore,
  readStore: ReadStore,
  release: number = groupVersion,
): Promise<string | undefined> {
  const { number } = await readLayout(readStore, release);
  // The checkpoint is read before the head: another instance may be moving both.
  const checkpoint = await readStore.loadCheckpoint(groupName, placeOf(release, number));
  if (checkpoint === undefined) return undefined;
  const head = await eventStore.headPosition();
  if (isBeyond(checkpoint, head)) {
    return restoredBeside(`the read models hold the log up to position ${checkpoint.commit}, but it ends at ${head}`);
  }
  const difference = await differenceFrom(eventStore, checkpoint.anchors);
  return difference === undefined ? undefined : restoredBeside(difference.text);
}
