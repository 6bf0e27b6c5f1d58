/**
 * Opens the EventStoreDB adapter. Code outside this folder imports only this file. Does not wait for a store that is
 * away; `open-stores.ts` does. Implements `docs/architecture.md#storage`.
 */
import type { EventData } from '@eventstore/db-client';
import { sleep } from '../../kernel/background.js';
import { systemClock, type Clock } from '../../kernel/clock.js';
import { ServiceError } from '../../kernel/errors.js';
import type { Logger } from '../../kernel/logger.js';
import { backoff } from '../../kernel/retry.js';
import { assertAppendable } from '../bounds.js';
import { eventBytes } from '../event-json.js';
import { StarvedError, type EventStore } from '../event-store.js';
import { notWritten } from '../store-access.js';
import { readAddress } from './address.js';
import { createAppender } from './append.js';
import { openConnection } from './connection.js';
import { toEventData } from './events.js';
import { accessError, handshakeError } from './failure.js';
import { loadFold, saveFold, type FoldAppends } from './fold-checkpoints.js';
import { harmlessTries, setRetention, type MetadataDeps } from './metadata.js';
import { readHead, readStream } from './read.js';
import { createReplacedLog } from './replaced-log.js';
import { readServerTime } from './server-time.js';
import { subscribeToLog } from './subscription.js';
import { tuning as standard, type Tuning } from './tuning.js';

export interface EventStoreDbOptions {
  /** See `address.ts`. May contain a password, so it is never logged. */
  readonly url: string;
  readonly logger: Logger;
  readonly clock?: Clock;
  /** Non-standard timeouts, for tests. */
  readonly tuning?: Partial<Tuning>;
}

/**
 * Connects on the first call. Calls are `unavailable` until the store is reachable.
 * @throws TypeError for a malformed URL
 */
export function openEventStoreDb(options: EventStoreDbOptions): EventStore {
  const { logger, clock = systemClock } = options;
  const address = readAddress(options.url);
  if (address.unused.length > 0) {
    logger.warn({ options: address.unused }, 'the URL of the event store has options that are not used');
  }
  const tuning: Tuning = { ...standard, ...options.tuning };
  const writing = openConnection(address, 'appends', logger, tuning);
  const reading = openConnection(address, 'reads', logger, tuning);
  const appender = createAppender({ address, connection: writing, clock });
  const replaced = createReplacedLog(logger, clock);
  let closing: Promise<void> | undefined;
  let starved = 0;
  /** The last ping has failed. */
  let failing = false;

  /** Appends an event that may safely be written twice. @throws ServiceError `unavailable` */
  async function appendHarmless(stream: string, event: EventData): Promise<void> {
    for (let attempt = 1; ; attempt += 1) {
      const outcome = await appender.append(stream, 'any', [event]);
      if (outcome.kind === 'appended') return;
      const cause = outcome.kind === 'conflict' ? 'a conflict' : outcome.cause;
      if (attempt >= harmlessTries || closing !== undefined) {
        throw notWritten('event store', cause);
      }
      await sleep(backoff(tuning.retry, attempt));
    }
  }

  /** @throws StoreAccessError when waiting does not help; ServiceError `unavailable` */
  async function ping(): Promise<void> {
    // After a failure, look for the reason first: a read may take longer to fail than the caller waits.
    const refusal = failing ? await handshakeError(address, tuning.handshakeMs) : undefined;
    if (refusal !== undefined) throw refusal;
    try {
      await readHead(reading, tuning.pingRetryMs);
      failing = false;
    } catch (error) {
      const cause = error instanceof ServiceError ? error.cause : error;
      const found = accessError(cause);
      if (found !== undefined) throw found;
      if (failing || closing !== undefined) throw error;
      failing = true;
      throw (await handshakeError(address, tuning.handshakeMs)) ?? error;
    }
  }

  const metadata: MetadataDeps = { reading, appender, logger };
  const foldAppends: FoldAppends = {
    append: appendHarmless,
    keep: (stream, maxCount) => setRetention(metadata, stream, { maxCount }),
  };

  return {
    async append(stream, expected, events) {
      assertAppendable(stream, events.map(eventBytes));
      return appender.append(stream, expected, events.map(toEventData));
    },
    read: (stream, readOptions) => readStream(reading, stream, readOptions),
    async *subscribe(subscribeOptions) {
      try {
        yield* subscribeToLog(reading, subscribeOptions, { logger, clock, replaced });
      } catch (error) {
        if (error instanceof StarvedError) starved += 1;
        throw error;
      }
    },
    starved: () => starved,
    setRetention: (stream, retention) => setRetention(metadata, stream, retention),
    loadFoldCheckpoint: (name) => loadFold(reading, name, logger),
    saveFoldCheckpoint: (name, checkpoint) => saveFold(foldAppends, name, checkpoint),
    headPosition: () => readHead(reading),
    time: () => readServerTime(reading, clock),
    ping,
    close() {
      closing ??= Promise.allSettled([writing.close(), reading.close()]).then(() => undefined);
      return closing;
    },
  };
}
