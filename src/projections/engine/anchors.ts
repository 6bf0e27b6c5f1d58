/**
 * The events by which a log is known again: the last one that the read models hold, and the last one that never expires.
 * They are kept in the checkpoint, because a position says nothing of a log that was restored and has grown since. Not
 * what follows from another log. Implements `docs/architecture.md#read-models`.
 */
import { ServiceError } from '../../kernel/errors.js';
import { expires, lastEvent } from '../../kernel/event.js';
import type { RecordedCommand } from '../../kernel/event.js';
import { firstFrom } from '../../storage/event-store.js';
import type { EventStore } from '../../storage/event-store.js';
import { BrokenLogError } from '../../storage/follow.js';
import type { Anchor } from '../../storage/read-store.js';

export interface Anchors {
  /** The read models hold these commands. */
  note(commands: readonly RecordedCommand[]): void;
  current(): readonly Anchor[];
}

/** @param stored those of the checkpoint, if it has any */
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

export interface Difference {
  /** False when the log only lacks an event: a server that is behind lacks it too. */
  readonly certain: boolean;
  /** What the read models hold and the log does not, as a sentence without its end. */
  readonly text: string;
}

/** How a log differs from the one that the anchors are from; undefined if nothing shows it. @throws ServiceError `unavailable` */
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

/** The sentence about a difference, without its end. */
export const restoredBeside = (text: string): string => `${text}: an older log was restored beside newer read models`;

/** A log whose subscriptions begin only if it is still the one that the anchors are from. */
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
