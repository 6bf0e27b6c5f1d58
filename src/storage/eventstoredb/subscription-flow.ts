/**
 * One subscription of the client as a queue, bounded in events and bytes. Events are queued at once, because a server
 * drops slow live consumers; a full queue pauses the flow. Nothing here may throw into the client, which would end the
 * flow silently. `subscription.ts` decides what happens when a flow ends.
 */
import {
  START,
  streamNameFilter,
  type AllStreamSubscription,
  type Position,
  type ResolvedEvent,
} from '@eventstore/db-client';
import { withDeadline, yieldToEventLoop } from '../../kernel/background.js';
import { isForeign, type StoredEvent } from '../../kernel/event.js';
import { bounds } from '../bounds.js';
import { eventBytes } from '../event-json.js';
import { passedBy, type LogItem, type SubscribeOptions } from '../event-store.js';
import type { Lease } from './connection.js';
import { toPosition, toStoredEvent, toResumePoint } from './events.js';
import type { Arrived } from './starvation.js';
import { tuning as standard, type Tuning } from './tuning.js';

type Queued = { readonly kind: 'event'; readonly event: StoredEvent } | Exclude<LogItem, { kind: 'events' }>;

export interface Flow {
  /** Waits for items. @returns at most about one batch, none when aborted @throws the error that ended the flow */
  next(): Promise<readonly LogItem[]>;
  arrived(): Arrived;
  /** Ends the flow with an error, after everything that has arrived is delivered. */
  fail(error: Error): void;
  close(): Promise<void>;
}

/** Joins adjacent events into one item: one item with many events costs consumers far less than many items. */
function joined(queued: readonly Queued[]): LogItem[] {
  const items: LogItem[] = [];
  let events: StoredEvent[] = [];
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

const sizeOf = (item: Queued): number => (item.kind === 'event' && !isForeign(item.event) ? eventBytes(item.event) : 0);

/** Items that have arrived but are not delivered yet. */
function createQueue({ queueHigh, queueLow, queueBytesHigh }: Tuning, ahead: NonNullable<SubscribeOptions['ahead']>) {
  const high = Math.min(queueHigh, 2 * ahead.events);
  const bytesHigh = Math.min(queueBytesHigh, 2 * ahead.bytes);
  const items: Queued[] = [];
  let bytes = 0;
  return {
    push(item: Queued): void {
      items.push(item);
      bytes += sizeOf(item);
    },
    /** Takes the first item, and as many more as the bounds of a batch allow. */
    take(): readonly Queued[] {
      let count = 0;
      let taken = 0;
      for (const item of items) {
        const size = sizeOf(item);
        if (count >= ahead.events || (count > 0 && taken + size > ahead.bytes)) break;
        count += 1;
        taken += size;
      }
      bytes -= taken;
      return items.splice(0, count);
    },
    isEmpty: () => items.length === 0,
    isFull: () => items.length >= high || bytes >= bytesHigh,
    isLow: () => items.length <= Math.min(queueLow, high / 4) && bytes <= bytesHigh / 2,
  };
}

/** @param onCheckpoint must not throw: the stream would stop */
function subscribe(
  { client }: Lease,
  streams: SubscribeOptions['streams'],
  after: SubscribeOptions['after'],
  maxSearchWindow: number,
  onCheckpoint: (reached: Position) => void,
): AllStreamSubscription {
  const checkpointReached = (_: unknown, reached: Position): void => onCheckpoint(reached);
  // A prefix would also match any number of foreign streams whose names start like one of ours.
  const names = streams.map((name) => name.replaceAll(/[$()*+.?[\\\]^{|}]/g, '\\$&'));
  const regex = `^(?:${names.join('|')})$`;
  const filter = streamNameFilter({ regex, maxSearchWindow, checkpointInterval: 1, checkpointReached });
  return client.subscribeToAll({ fromPosition: after === 'start' ? START : toPosition(after), filter });
}

/** Starts a subscription to the whole log. The caller must close it, even if it has ended by itself. */
export function openFlow(lease: Lease, options: SubscribeOptions, tuning: Tuning = standard): Flow {
  const { streams, after, signal, ahead = { events: bounds.itemEvents, bytes: bounds.itemBytes } } = options;
  const { confirmMs, disposeMs, searchWindow } = tuning;
  const queue = createQueue(tuning, ahead);
  const wanted = new Set(streams);
  let ended: { readonly error: unknown } | undefined;
  let wakeUp = (): void => undefined;
  let caughtUp = false;
  let isLive = false;
  let messages = 0;
  let position = after === 'start' ? 0 : passedBy(after);
  let checkpoint: Position | undefined;

  const end = (error: unknown): void => {
    ended ??= { error };
    clearTimeout(unconfirmed);
    wakeUp();
  };
  const unconfirmed = setTimeout(() => end(new Error('the subscription was not confirmed in time')), confirmMs);

  /** Queues a checkpoint and `caughtUp` after the events before them, which may still be in the stream's buffer. */
  function settleMarks(): void {
    if (subscription.readableLength > 0) return;
    const point = checkpoint === undefined ? undefined : toResumePoint(checkpoint);
    if (point !== undefined) {
      queue.push({ kind: 'checkpoint', point });
      position = Math.max(position, passedBy(point));
    }
    if (caughtUp) {
      queue.push({ kind: 'caught_up' });
      isLive = true;
    }
    checkpoint = undefined;
    caughtUp = false;
  }

  /** Handles one message of the server. After the end nothing is queued: the event that caused it is missing. */
  function receive(take: () => void): void {
    if (ended !== undefined) return;
    try {
      messages += 1;
      take();
      settleMarks();
      wakeUp();
    } catch (error) {
      end(error);
    }
  }

  const onCheckpoint = (reached: Position): void => receive(() => void (checkpoint = reached));
  const subscription = subscribe(lease, streams, after, searchWindow, onCheckpoint);
  subscription.on('error', end);
  subscription.on('end', () => end(new Error('the event store ended the subscription')));
  subscription.on('close', () => end(new Error('the event store closed the subscription')));
  subscription.on('confirmation', () => clearTimeout(unconfirmed));
  subscription.on('caughtUp', () => receive(() => void (caughtUp = true)));
  subscription.on('data', (resolved: ResolvedEvent) =>
    receive(() => {
      const event = toStoredEvent(resolved);
      // A waiting checkpoint may lie before or after this event; the position of the event replaces it.
      checkpoint = undefined;
      if (event !== undefined) {
        position = event.position;
        // The server's `$` also matches before a line break at the end of a name.
        if (wanted.has(event.stream)) queue.push({ kind: 'event', event });
      }
      if (queue.isFull()) subscription.pause();
    }),
  );
  const onAbort = (): void => wakeUp();
  signal.addEventListener('abort', onAbort);

  return {
    async next() {
      while (queue.isEmpty() && ended === undefined && !signal.aborted) {
        await new Promise<void>((resolve) => (wakeUp = resolve));
        // Events that arrive in the same turn of the event loop are delivered together.
        await yieldToEventLoop();
      }
      if (signal.aborted) return [];
      // Events that arrived before the end are delivered first: the next subscription starts after them.
      if (ended !== undefined && queue.isEmpty()) throw ended.error;
      const taken = queue.take();
      if (queue.isLow() && subscription.isPaused()) subscription.resume();
      return joined(taken);
    },
    arrived: () => ({ messages, position, paused: subscription.isPaused(), live: isLive }),
    fail: end,
    async close() {
      clearTimeout(unconfirmed);
      signal.removeEventListener('abort', onAbort);
      // The client may still emit errors, which need a listener; data does not.
      subscription.removeAllListeners('data');
      subscription.resume();
      await withDeadline(subscription.unsubscribe(), disposeMs).catch(() => undefined);
    },
  };
}
