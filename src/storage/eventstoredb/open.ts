/**
 * Opens the EventStoreDB adapter: the only door into this folder from outside. Puts the parts together and waits for the
 * store at the start. Implements `docs/architecture.md` (storage, "Larger installations").
 */
import { jsonEvent, type EventData } from '@eventstore/db-client';
import { sleep } from '../../kernel/background.js';
import { systemClock, type Clock } from '../../kernel/clock.js';
import { ServiceError } from '../../kernel/errors.js';
import { randomIds, type Ids } from '../../kernel/ids.js';
import type { Logger } from '../../kernel/logger.js';
import { backoff } from '../../kernel/retry.js';
import { assertAppendable } from '../append-limits.js';
import { eventBytes } from '../event-json.js';
import type { EventStore, Retention } from '../event-store.js';
import { createAppender } from './append.js';
import { claimBatchPath } from './batch-path.js';
import { openConnection } from './connection.js';
import { toEventData } from './events.js';
import { loadFold, saveFold, type FoldAppends } from './fold-checkpoints.js';
import { readHead, readStream } from './read.js';
import { subscribeToLog } from './subscription.js';
import { tuning } from './tuning.js';

export interface EventStoreDbOptions {
  /** `esdb://…` or `esdb+discover://…`; may hold a password, so it is never logged. */
  readonly url: string;
  readonly logger: Logger;
  readonly clock?: Clock;
  readonly ids?: Ids;
  /** How long the opening waits for the store, in milliseconds; 0 for not at all. Default: a minute. */
  readonly waitMs?: number;
  /** Ends that waiting. */
  readonly signal?: AbortSignal;
}

/** Tries of a write that may be repeated without harm. */
const harmlessTries = 5;

/** @throws ServiceError `unavailable` when the store was not there in time. @throws TypeError for a URL that is none */
export async function openEventStoreDb(options: EventStoreDbOptions): Promise<EventStore> {
  const { url, logger, clock = systemClock, ids = randomIds, signal } = options;
  const writing = openConnection(url, 'appends', logger);
  const reading = openConnection(url, 'reads', logger);
  const batchPath = claimBatchPath();
  const appender = createAppender({ url, connection: writing, batchPath, clock });
  const saving = new Map<string, Promise<void>>();
  let closing: Promise<void> | undefined;

  /** For events that do no harm when they stand twice. @throws ServiceError `unavailable` */
  async function appendHarmless(stream: string, event: EventData): Promise<void> {
    for (let attempt = 1; ; attempt += 1) {
      const outcome = await appender.append(stream, 'any', [event]);
      if (outcome.kind === 'appended') return;
      const cause = outcome.kind === 'conflict' ? 'a conflict' : outcome.cause;
      if (attempt >= harmlessTries || closing !== undefined) {
        throw new ServiceError('unavailable', `The event store can not be written now: ${cause}.`);
      }
      await sleep(backoff(tuning.retry, attempt));
    }
  }

  function setMetadata(stream: string, { maxAgeSeconds, maxCount }: Retention): Promise<void> {
    const data = {
      ...(maxAgeSeconds === undefined ? {} : { $maxAge: maxAgeSeconds }),
      ...(maxCount === undefined ? {} : { $maxCount: maxCount }),
    };
    return appendHarmless(`$$${stream}`, jsonEvent({ id: ids.next(), type: '$metadata', data }) as EventData);
  }

  const foldAppends: FoldAppends = {
    append: appendHarmless,
    keep: (stream, maxCount) => setMetadata(stream, { maxCount }),
  };

  const store: EventStore = {
    async append(stream, expected, events) {
      if (stream.length === 0 || stream.length > 256) throw new RangeError('a stream name has 1 to 256 characters');
      assertAppendable(events.map(eventBytes));
      return appender.append(stream, expected, events.map(toEventData));
    },
    read: (stream, readOptions) => readStream(reading, stream, readOptions),
    subscribe: (subscribeOptions) => subscribeToLog(reading, subscribeOptions, logger),
    setRetention: setMetadata,
    loadFoldCheckpoint: (name) => loadFold(reading, name, logger),
    async saveFoldCheckpoint(name, checkpoint) {
      const before = saving.get(name) ?? Promise.resolve();
      const mine = before.catch(() => undefined).then(() => saveFold(foldAppends, ids, name, checkpoint));
      saving.set(name, mine);
      try {
        await mine;
      } finally {
        if (saving.get(name) === mine) saving.delete(name);
      }
    },
    headPosition: () => readHead(reading),
    async ping() {
      await readHead(reading);
    },
    close() {
      closing ??= (async () => {
        await Promise.allSettled([writing.close(), reading.close()]);
        batchPath.release();
      })();
      return closing;
    },
  };

  try {
    await waitForStore(store, options.waitMs ?? 60_000, clock, logger, signal);
  } catch (error) {
    await store.close();
    throw error;
  }
  return store;
}

async function waitForStore(
  store: EventStore,
  waitMs: number,
  clock: Clock,
  logger: Logger,
  signal: AbortSignal | undefined,
): Promise<void> {
  if (waitMs <= 0) return;
  const started = clock.monotonic();
  for (let attempt = 0; ; attempt += 1) {
    try {
      await store.ping();
      if (attempt > 0) logger.info({}, 'the event store is there');
      return;
    } catch (error) {
      const left = waitMs - (clock.monotonic() - started);
      if (left <= 0 || signal?.aborted === true) throw error;
      const cause = error instanceof Error ? error.message : String(error);
      logger.warn({ cause, left_ms: Math.round(left) }, 'waiting for the event store');
      await sleep(Math.min(left, tuning.startProbeMs), signal);
    }
  }
}
