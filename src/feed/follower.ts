/**
 * The one subscription behind all readers of the feed: follows the log from its end, fills the window, and announces news. While
 * a store is away it waits. Implements `docs/contract/automation.md#event-feed`.
 */
import { sleep } from '../kernel/background.js';
import { errorText, ServiceError, unreachable } from '../kernel/errors.js';
import { lastEvent, type RecordedCommand, type StoredEvent } from '../kernel/event.js';
import { createListeners } from '../kernel/listeners.js';
import { logsError, type Logger } from '../kernel/logger.js';
import { backoff, storeRetry } from '../kernel/retry.js';
import { createWaiters } from '../kernel/waiters.js';
import { levelOf } from '../storage/broken-log.js';
import { newestEvent, type EventStore } from '../storage/event-store.js';
import { commandsAfter, followLog, type FollowItem } from '../storage/follow.js';
import { feedStreams, type Cursors } from './cursor.js';
import type { FeedNews, FeedPlace } from './port.js';
import { followedNames, type CommittedNames, type Names } from './names.js';
import { stepsOf } from './steps.js';
import { createWindow, type Step, type Window, type WindowBounds } from './window.js';
import { tuning } from './tuning.js';

export interface FollowerDeps {
  readonly eventStore: Pick<EventStore, 'read' | 'subscribe'>;
  readonly cursors: Cursors;
  readonly names: Names;
  /** See `FeedDeps`. */
  committed(): readonly CommittedNames[];
  readonly logger: Logger;
  /** For tests. */
  readonly windowBounds?: WindowBounds | undefined;
}

export interface Follower {
  /** Undefined until the end of the log is known. */
  window(): Window | undefined;
  /** Whether the window has reached the end of the log. */
  live(): boolean;
  onNews(listener: (news: FeedNews) => void): () => void;
  /** True once the condition, checked with each news, holds; false after `timeoutMs`. */
  until(condition: () => boolean, timeoutMs: number): Promise<boolean>;
  close(): Promise<void>;
}

/** The newest event of all streams. It ends a command, because appends are atomic. */
async function endOfLog({ eventStore, cursors }: FollowerDeps): Promise<FeedPlace> {
  const newest = await Promise.all(feedStreams.map((stream) => newestEvent(eventStore, stream)));
  const last = newest.reduce<StoredEvent | undefined>(
    (latest, event) => (event !== undefined && event.position > (latest?.position ?? -1) ? event : latest),
    undefined,
  );
  return last === undefined ? beforeAll : { position: last.position, cursor: cursors.of(last) };
}

/** Starts to follow the log. */
export function followFeed(deps: FollowerDeps): Follower {
  const { eventStore, cursors, logger, windowBounds } = deps;
  const stop = new AbortController();
  const { signal } = stop;
  const waiters = createWaiters();
  const listeners = createListeners<FeedNews>(logsError(logger, 'a reader of the event feed failed'));
  let window: Window | undefined;
  let live = false;

  /** Retries while a store is away, until the follower stops. @throws any other error */
  async function retried<T>(attempt: () => Promise<T>): Promise<T | undefined> {
    for (let failures = 0; !signal.aborted; failures += 1) {
      try {
        return await attempt();
      } catch (error) {
        if (!(error instanceof ServiceError) || error.code !== 'unavailable') throw error;
        if (failures === 0) logger.warn({ error: errorText(error) }, 'the event feed waits for a store');
        await sleep(backoff(storeRetry, failures), signal);
      }
    }
    return undefined;
  }

  /** The names at the place where the window begins: the committed names, and those of the commands up to there. */
  async function namesAt(begin: FeedPlace, committed: readonly CommittedNames[]): Promise<Names> {
    const names = followedNames(deps.names, committed);
    try {
      for (const { stream, revision } of committed) {
        for await (const commands of commandsAfter(eventStore, stream, revision)) {
          const before = commands.filter((command) => lastEvent(command).position <= begin.position);
          names.learn(before);
          if (before.length < commands.length) break;
        }
      }
    } catch (error) {
      // An event that this release cannot read has stopped the folds as well; the read models have the names.
      if (error instanceof ServiceError) throw error;
    }
    return names;
  }

  async function take(to: Window, commands: readonly RecordedCommand[], names: Names): Promise<void> {
    const steps = await retried(() => stepsOf(commands, { cursors, names }));
    if (steps === undefined) return;
    const from = to.to;
    to.add(steps);
    listeners.tell({ kind: 'items', from, items: itemsIn(steps), to: to.to });
  }

  async function run(): Promise<void> {
    const committed = deps.committed();
    const begin = await retried(() => endOfLog(deps));
    const names = begin && (await retried(() => namesAt(begin, committed)));
    if (begin === undefined || names === undefined) return;
    window = createWindow(begin, windowBounds);
    for await (const item of followBehind(eventStore, begin, signal)) {
      switch (item.kind) {
        case 'commands':
          await take(window, item.commands, names);
          break;
        case 'caught_up':
          if (!live) listeners.tell({ kind: 'caught_up' });
          live = true;
          break;
        case 'dropped':
          live = false;
          break;
        case 'checkpoint':
          continue;
        default:
          unreachable(item);
      }
      waiters.look();
    }
  }

  const running = run().catch((error: unknown) => {
    live = false;
    logger[levelOf(error)]({ error: errorText(error) }, 'the event feed no longer follows the log');
  });
  return {
    window: () => window,
    live: () => live,
    onNews: listeners.add,
    until: waiters.until,
    async close() {
      stop.abort();
      waiters.close();
      await running;
    },
  };
}

/** The log after a place, in slices. */
export function followBehind(
  eventStore: Pick<EventStore, 'subscribe'>,
  { position }: FeedPlace,
  signal: AbortSignal,
): AsyncGenerator<FollowItem, void, void> {
  const after = position < 0 ? 'start' : { commit: position, prepare: position };
  return followLog(eventStore, { streams: feedStreams, after, ahead: tuning.ahead, signal });
}

/** The place before the first event of the log. */
export const beforeAll: FeedPlace = { position: -1, cursor: null };

const itemsIn = (steps: readonly Step[]) => steps.flatMap(({ item }) => (item === null ? [] : [item]));
