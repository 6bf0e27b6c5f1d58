/**
 * Subscriptions to the whole log by prefix of the stream's name. Events are queued as they come and handed out from
 * there: a server drops a consumer that is slow while live, so nothing waits in the path of the data. A full queue stops
 * the flow; what happens then is the server's choice, and a drop like any other. Every end that was not asked for is
 * thrown, and the consumer subscribes again from its last point. Implements `event-store.ts` (subscribe).
 */
import {
  START,
  streamNameFilter,
  type AllStreamSubscription,
  type Position,
  type ResolvedEvent,
} from '@eventstore/db-client';
import { withDeadline } from '../../kernel/background.js';
import { ServiceError } from '../../kernel/errors.js';
import type { RecordedEvent } from '../../kernel/event.js';
import { limits } from '../../kernel/limits.js';
import type { Logger } from '../../kernel/logger.js';
import type { LogItem, SubscribeOptions } from '../event-store.js';
import type { Connection, Lease } from './connection.js';
import { toRecordedEvent } from './events.js';
import { failureText, isFailedDiscovery, isTooSlow } from './failure.js';
import { subscriptionPlaces } from './places.js';
import { toPosition, toResumePoint } from './positions.js';
import { readHead } from './read.js';

type Queued = { readonly kind: 'event'; readonly event: RecordedEvent } | Exclude<LogItem, { kind: 'events' }>;

interface Flow {
  /** The next items; waits for one. Empty when aborted. @throws what ended the subscription */
  next(): Promise<readonly Queued[]>;
  close(): Promise<void>;
}

function openFlow(lease: Lease, { prefix, after, signal }: SubscribeOptions): Flow {
  const { confirmMs, disposeMs, queueHigh, queueLow, searchWindow } = limits.eventStoreDb;
  const { batchEvents } = limits.storage;
  const queue: Queued[] = [];
  let ended: unknown;
  let wakeUp = (): void => undefined;
  let caughtUp = false;
  let checkpoint: Position | undefined;

  const end = (error: unknown): void => {
    ended ??= error;
    clearTimeout(unconfirmed);
    wakeUp();
  };
  const unconfirmed = setTimeout(() => end(new Error('the subscription was not confirmed in time')), confirmMs);

  /** Marks stand behind the events before them, and some of those may still be in the stream's own buffer. */
  function settleMarks(subscription: AllStreamSubscription): void {
    if (subscription.readableLength > 0) return;
    if (checkpoint !== undefined) queue.push({ kind: 'checkpoint', point: toResumePoint(checkpoint) });
    if (caughtUp) queue.push({ kind: 'caught_up' });
    checkpoint = undefined;
    caughtUp = false;
    wakeUp();
  }

  const filter = streamNameFilter({
    prefixes: [prefix],
    maxSearchWindow: searchWindow,
    checkpointInterval: 1,
    // Throwing here would stop the subscription without a word.
    checkpointReached: (_, position) => {
      checkpoint = position;
      settleMarks(subscription);
    },
  });
  const subscription = lease.client.subscribeToAll({
    fromPosition: after === 'start' ? START : toPosition(after),
    filter,
  });
  subscription.on('error', end);
  subscription.on('end', () => end(new Error('the event store ended the subscription')));
  subscription.on('close', () => end(new Error('the event store closed the subscription')));
  subscription.on('confirmation', () => clearTimeout(unconfirmed));
  subscription.on('caughtUp', () => {
    caughtUp = true;
    settleMarks(subscription);
  });
  subscription.on('data', (resolved: ResolvedEvent) => {
    try {
      const event = toRecordedEvent(resolved);
      // A mark that waited here may lie before or behind this event: the event's own position says enough.
      checkpoint = undefined;
      if (event !== undefined) queue.push({ kind: 'event', event });
    } catch (error) {
      end(error);
    }
    if (queue.length >= queueHigh) subscription.pause();
    settleMarks(subscription);
  });
  const onAbort = (): void => wakeUp();
  signal.addEventListener('abort', onAbort);

  return {
    async next() {
      // What was delivered before the end is handed out before it: the next subscription begins behind it.
      while (queue.length === 0 && !signal.aborted) {
        if (ended !== undefined) throw ended;
        await new Promise<void>((resolve) => {
          wakeUp = resolve;
        });
      }
      if (signal.aborted) return [];
      const items = queue.splice(0, batchEvents);
      if (queue.length <= queueLow && subscription.isPaused()) subscription.resume();
      return items;
    },
    async close() {
      clearTimeout(unconfirmed);
      signal.removeEventListener('abort', onAbort);
      // What the client still emits must find a listener for errors, and nothing else.
      subscription.removeAllListeners('data');
      subscription.resume();
      await withDeadline(subscription.unsubscribe(), disposeMs).catch(() => undefined);
    },
  };
}

/** Joins neighbours into batches, within the bounds of one item. */
function* batched(items: readonly Queued[]): Generator<LogItem> {
  let events: RecordedEvent[] = [];
  for (const item of items) {
    if (item.kind === 'event') {
      events.push(item.event);
      continue;
    }
    if (events.length > 0) yield { kind: 'events', events };
    events = [];
    yield item;
  }
  if (events.length > 0) yield { kind: 'events', events };
}

/** A place where the log does not reach yet: it was restored from a backup, and what follows would be missed. */
async function assertWithinLog(connection: Connection, options: SubscribeOptions, logger: Logger): Promise<void> {
  const { after, prefix } = options;
  if (after === 'start' || after.commit === 0) return;
  const head = await readHead(connection);
  if (head >= after.commit) return;
  const fields = { prefix, head, after: after.commit };
  logger.error(
    fields,
    'the log ends before the stored position: it was restored from an older backup; rebuild from the log',
  );
  throw new ServiceError(
    'unavailable',
    `The log ends at ${head}, before the stored position ${after.commit}: it was restored from an older backup.`,
  );
}

/** @throws ServiceError `unavailable` whenever the subscription ends before the signal says so */
export async function* subscribeToLog(
  connection: Connection,
  options: SubscribeOptions,
  logger: Logger,
): AsyncGenerator<LogItem, void, void> {
  const { signal } = options;
  if (signal.aborted) return;
  await assertWithinLog(connection, options, logger);
  const giveBack = await subscriptionPlaces.take();
  try {
    const lease = await connection.lease();
    if (signal.aborted) return;
    const flow = openFlow(lease, options);
    try {
      while (!signal.aborted) yield* batched(await flow.next());
    } catch (error) {
      if (signal.aborted) return;
      if (isFailedDiscovery(error)) await connection.discard(lease, failureText(error));
      const cause = failureText(error);
      if (isTooSlow(error)) logger.debug({ prefix: options.prefix }, 'the event store dropped a busy subscription');
      else logger.warn({ prefix: options.prefix, cause }, 'a subscription to the event store ended');
      throw new ServiceError('unavailable', `The subscription to the log ended: ${cause}.`, { cause: error });
    } finally {
      await flow.close();
    }
  } catch (error) {
    if (!signal.aborted) throw error;
  } finally {
    giveBack();
  }
}
