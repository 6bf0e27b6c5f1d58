/**
 * Tells and counts the events of somebody else in the streams of this service, each once, whoever meets it first: a log
 * whose subscriptions are looked at. What follows from one is decided by its reader (`follow.ts`). Implements
 * `docs/contract/domain.md#one-consistency-boundary-the-fleet`, "told once with stream, revision and id".
 */
import { holdsFacts, isForeign } from '../kernel/event.js';
import type { ForeignEvent } from '../kernel/event.js';
import type { Logger } from '../kernel/logger.js';
import { foreignEventPage } from './broken-log.js';
import type { EventStore } from './event-store.js';

/** Lines for each stream: somebody who writes into it by mistake does so all the time. */
const linesPerStream = 100;

export interface WatchedLog<Log> {
  readonly eventStore: Log;
  /** Events of somebody else since the start, by stream. */
  foreign(): ReadonlyMap<string, number>;
}

export function watchForeignEvents<Log extends Pick<EventStore, 'subscribe'>>(
  log: Log,
  logger: Logger,
): WatchedLog<Log> {
  const counts = new Map<string, number>();
  /** Subscriptions go forward, and the read models' begins before all others: what is not newer has been told. */
  const newest = new Map<string, number>();

  function note({ stream, revision, id, type, foreign }: ForeignEvent): void {
    if (revision <= (newest.get(stream) ?? -1)) return;
    newest.set(stream, revision);
    const count = (counts.get(stream) ?? 0) + 1;
    counts.set(stream, count);
    if (count > linesPerStream) return;
    const follows = holdsFacts(stream) ? 'it is passed over' : 'nothing behind it is read, and nothing is written';
    logger.error(
      { stream, revision, event_id: id, type, reason: foreign, see: foreignEventPage },
      `somebody else has written into a stream of this service: ${follows}`,
    );
    if (count === linesPerStream) {
      logger.error(
        { stream, see: foreignEventPage },
        'more events of somebody else are counted, and not told one by one',
      );
    }
  }

  return {
    foreign: () => counts,
    eventStore: {
      ...log,
      async *subscribe(options) {
        for await (const item of log.subscribe(options)) {
          if (item.kind === 'events') for (const event of item.events) if (isForeign(event)) note(event);
          yield item;
        }
      },
    },
  };
}
