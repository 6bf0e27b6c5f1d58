/**
 * One subscription of the client as a queue. Events are queued at once, because a server drops slow live consumers. The
 * queue is bounded in events and bytes; a full queue pauses the flow, and the server may then drop the subscription.
 * Nothing here may throw into the client, which would end the flow silently. What happens when a flow ends is up to
 * `subscription.ts`.
 */
import {
  START,
  streamNameFilter,
  type AllStreamSubscription,
  type Position,
  type ResolvedEvent,
} from '@eventstore/db-client';
import { withDeadline } from '../../kernel/background.js';
import type { RecordedEvent } from '../../kernel/event.js';
import { passedBy, type LogItem, type SubscribeOptions } from '../event-store.js';
import type { Lease } from './connection.js';
import { toRecordedEvent } from './events.js';
import { jsonSize } from './json-size.js';
import { toPosition, toResumePoint } from './positions.js';
import { bounds } from '../bounds.js';
import type { Arrived } from './starvation.js';
import { tuning as standard, type Tuning } from './tuning.js';

type Queued =
  | { readonly kind: 'event'; readonly event: RecordedEvent; readonly bytes: number }
  | Exclude<LogItem, { kind: 'events' }>;

export interface Flow {
  /**
   * Waits for items. @returns at most about one batch of them, none when aborted @throws the error that ended the flow
   */
  next(): Promise<readonly LogItem[]>;
  arrived(): Arrived;
  /** Ends the flow with an error, once what has arrived is handed out. */
  fail(error: Error): void;
  close(): Promise<void>;
}

/** Joins adjacent events into one item. */
function joined(queued: readonly Queued[]): LogItem[] {
  const items: LogItem[] = [];
  let events: RecordedEvent[] = [];
  const flush = (): void => {
    if (events.length > 0) items.push({ kind: 'events', events });
    events = [];
  };
  for (const one of queued) {
    if (one.kind === 'event') {
      events.push(one.event);
      continue;
    }
    flush();
    items.push(one);
  }
  flush();
  return items;
}

/** Items that have arrived and have not been handed out. */
function createQueue(): {
  push(item: Queued): void;
  /** Takes the first item, and more of them as far as the bounds of a batch allow. */
  take(): readonly Queued[];
  length(): number;
  bytes(): number;
} {
  const { itemEvents, itemBytes } = bounds;
  const items: Queued[] = [];
  let bytes = 0;
  const sizeOf = (item: Queued): number => (item.kind === 'event' ? item.bytes : 0);
  return {
    push(item) {
      items.push(item);
      bytes += sizeOf(item);
    },
    take() {
      let count = 0;
      let taken = 0;
      for (const item of items) {
        const size = sizeOf(item);
        if (count >= itemEvents || (count > 0 && taken + size > itemBytes)) break;
        count += 1;
        taken += size;
      }
      bytes -= taken;
      return items.splice(0, count);
    },
    length: () => items.length,
    bytes: () => bytes,
  };
}

/** Begins a subscription to the whole log. The caller must close it, even if it has ended by itself. */
export function openFlow(lease: Lease, { prefix, after, signal }: SubscribeOptions, tuning: Tuning = standard): Flow {
  const { catchUpGatherMs, confirmMs, disposeMs, queueHigh, queueLow, queueBytesHigh, searchWindow } = tuning;
  const queue = createQueue();
  let ended: { readonly error: unknown } | undefined;
  let wakeUp = (): void => undefined;
  let caughtUp = false;
  /** The content of the queue may be taken. */
  let ready = false;
  let isLive = false;
  let messages = 0;
  let position = after === 'start' ? 0 : passedBy(after);
  let gathering: NodeJS.Timeout | undefined;
  let turn: NodeJS.Immediate | undefined;
  let checkpoint: Position | undefined;

  const end = (error: unknown): void => {
    ended ??= { error };
    clearTimeout(unconfirmed);
    wakeUp();
  };
  const unconfirmed = setTimeout(() => end(new Error('the subscription was not confirmed in time')), confirmMs);

  function announce(): void {
    clearTimeout(gathering);
    clearImmediate(turn);
    gathering = undefined;
    turn = undefined;
    ready = queue.length() > 0;
    wakeUp();
  }

  /**
   * One item with many events costs consumers far less than many items. So events that arrive in one turn of the event
   * loop are handed out together; while catching up, those of some milliseconds, up to the bound of one item.
   */
  function gather(): void {
    if (ready || queue.length() === 0) return;
    if (queue.length() >= bounds.itemEvents || subscription.isPaused()) announce();
    else if (isLive) turn ??= setImmediate(announce);
    else gathering ??= setTimeout(announce, catchUpGatherMs);
  }

  /**
   * Wraps the client's callbacks: an error thrown into the client would be an unhandled rejection and stop all events.
   */
  const guarded =
    <A extends readonly unknown[]>(work: (...args: A) => void) =>
    (...args: A): void => {
      try {
        work(...args);
      } catch (error) {
        end(error);
      }
    };

  /**
   * Queues a checkpoint and `caughtUp` only after the events before them, some of which may still be in the stream's
   * buffer.
   */
  function settleMarks(subscription: AllStreamSubscription): void {
    if (subscription.readableLength > 0) return;
    const point = checkpoint === undefined ? undefined : toResumePoint(checkpoint);
    if (point !== undefined) {
      queue.push({ kind: 'checkpoint', point });
      position = Math.max(position, passedBy(point));
    }
    if (caughtUp) {
      queue.push({ kind: 'caught_up' });
      isLive = true;
      announce();
    }
    checkpoint = undefined;
    caughtUp = false;
    gather();
  }

  const filter = streamNameFilter({
    prefixes: [prefix],
    maxSearchWindow: searchWindow,
    checkpointInterval: 1,
    checkpointReached: guarded((_: unknown, reached: Position) => {
      messages += 1;
      checkpoint = reached;
      settleMarks(subscription);
    }),
  });
  const fromPosition = after === 'start' ? START : toPosition(after);
  const subscription = lease.client.subscribeToAll({ fromPosition, filter });
  subscription.on('error', end);
  subscription.on('end', () => end(new Error('the event store ended the subscription')));
  subscription.on('close', () => end(new Error('the event store closed the subscription')));
  subscription.on('confirmation', () => clearTimeout(unconfirmed));
  subscription.on(
    'caughtUp',
    guarded(() => {
      messages += 1;
      caughtUp = true;
      settleMarks(subscription);
    }),
  );
  subscription.on(
    'data',
    guarded((resolved: ResolvedEvent) => {
      if (ended !== undefined) return;
      messages += 1;
      const event = toRecordedEvent(resolved);
      // A waiting checkpoint may lie before or after this event; the position of the event replaces it.
      checkpoint = undefined;
      if (event !== undefined) {
        position = event.position;
        queue.push({ kind: 'event', event, bytes: jsonSize(event.data) + jsonSize(event.metadata) });
      }
      if (queue.length() >= queueHigh || queue.bytes() >= queueBytesHigh) subscription.pause();
      settleMarks(subscription);
      // Even with more in the stream's buffer: a paused flow delivers nothing until items are taken.
      gather();
    }),
  );
  const onAbort = (): void => wakeUp();
  signal.addEventListener('abort', onAbort);

  return {
    async next() {
      // Events that arrived before the end are handed out first: the next subscription begins after them.
      while (!ready && !signal.aborted) {
        if (ended !== undefined && queue.length() === 0) throw ended.error;
        if (ended !== undefined) break;
        await new Promise<void>((resolve) => {
          wakeUp = resolve;
        });
      }
      if (signal.aborted) return [];
      const taken = queue.take();
      ready = false;
      gather();
      const isLow = queue.length() <= queueLow && queue.bytes() <= queueBytesHigh / 2;
      if (isLow && subscription.isPaused()) subscription.resume();
      return joined(taken);
    },
    arrived: () => ({ messages, position, paused: subscription.isPaused(), live: isLive }),
    fail: end,
    async close() {
      clearTimeout(unconfirmed);
      clearTimeout(gathering);
      clearImmediate(turn);
      signal.removeEventListener('abort', onAbort);
      // The client may still emit errors, which need a listener; data does not.
      subscription.removeAllListeners('data');
      subscription.resume();
      await withDeadline(subscription.unsubscribe(), disposeMs).catch(() => undefined);
    },
  };
}
