/**
 * Logs and counts foreign events in this service's streams, each once, whichever subscription sees it first: wraps a
 * log and watches its subscriptions. Each reader decides what to do about one (`follow.ts`). Implements
 * `docs/contract/domain.md#one-consistency-boundary-the-fleet`, "told once with stream, revision and id".
 */
import { holdsFacts, isForeign, type ForeignEvent } from '../kernel/event.js';
import type { Logger } from '../kernel/logger.js';
import { foreignEventPage } from './broken-log.js';
import type { EventStore } from './event-store.js';

/** Lines per stream: a program that writes into it by mistake does so all the time. */
const linesPerStream = 100;

export interface WatchedLog<Log> {
  readonly eventStore: Log;
  /** Foreign events since the start, by stream. */
  foreign(): ReadonlyMap<string, number>;
}

export function watchForeignEvents<Log extends Pick<EventStore, 'subscribe'>>(
  log: Log,
  logger: Logger,
): WatchedLog<Log> {
  const counts = new Map<string, number>();
  /** Subscriptions only go forward, and the read models' starts first, so older events were reported before. */
  const newest = new Map<string, number>();

  function note({ stream, revision, id, type, foreign }: ForeignEvent): void {
    if (revision <= (newest.get(stream) ?? -1)) return;
    newest.set(stream, revision);
    const count = (counts.get(stream) ?? 0) + 1;
    counts.set(stream, count);
    if (count > linesPerStream) return;
    const follows = holdsFacts(stream) ? 'it is skipped' : 'nothing after it is read, and nothing is written';
    logger.error(
      { stream, revision, event_id: id, type, reason: foreign, see: foreignEventPage },
      `somebody else has written into a stream of this service: ${follows}`,
    );
    if (count === linesPerStream) {
      logger.error(
        { stream, see: foreignEventPage },
        'further events of somebody else are counted, but no longer logged one by one',
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
