/**
 * Whether the committed fleet holds everything that the log held when the question was asked. Its subscription cannot tell:
 * it may lag without knowing it. Asked before a version that the fold does not have is blamed on a restored log.
 * Implements `docs/contract/domain.md#generation`.
 */
import { timedOut, withDeadline } from '../kernel/background.js';
import { streams } from '../kernel/event.js';
import type { EventStore } from '../storage/event-store.js';
import { lastRevision } from '../storage/event-store.js';

export interface LogHeadDeps {
  readonly eventStore: EventStore;
  /** Resolves true once the fold has the revision, false if that takes too long. */
  folded(revision: number): Promise<boolean>;
  /** How long the read of the head may take, in milliseconds. */
  readonly waitMs: number;
}

/**
 * @returns a function that reads the head of the fleet's stream and resolves true once the fold has it, false if that
 * takes too long. After a restore every agent causes a call at once, so callers share a read that begins after their
 * call. @throws ServiceError `unavailable`
 */
export function createLogHead({ eventStore, folded, waitMs }: LogHeadDeps): () => Promise<boolean> {
  let running: Promise<number> | undefined;
  let next: Promise<number> | undefined;

  function read(): Promise<number> {
    const reading = lastRevision(eventStore, streams.fleet).then((revision) => revision ?? -1);
    running = reading;
    const over = (): void => {
      if (running === reading) running = undefined;
    };
    reading.then(over, over);
    return reading;
  }

  function readAfterNow(): Promise<number> {
    if (running === undefined) return read();
    next ??= running
      .catch(() => undefined)
      .then(() => {
        next = undefined;
        return read();
      });
    return next;
  }

  return async () => {
    const head = await withDeadline(readAfterNow(), waitMs);
    return head !== timedOut && (await folded(head));
  };
}
