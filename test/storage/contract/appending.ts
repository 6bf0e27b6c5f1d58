/** How a client must append: after an unknown outcome it looks for the event ids. Not a test. */
import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { ServiceError } from '../../../src/kernel/errors.js';
import type { ProposedEvent, RecordedEvent, StoredEvent } from '../../../src/kernel/event.js';
import type { JsonObject } from '../../../src/kernel/json.js';
import { ownEvent } from '../../../src/storage/broken-log.js';
import {
  passedBy,
  type EventStore,
  type ExpectedRevision,
  type LogItem,
  type ResumePoint,
} from '../../../src/storage/event-store.js';

/** The events of one command, ready to append. */
export function commandOf(count: number, data: JsonObject = {}): ProposedEvent[] {
  const id = randomUUID();
  return Array.from({ length: count }, (_, index) => ({
    id: randomUUID(),
    type: 'ThingHappened',
    data: { ...data, index },
    metadata: {
      command: { id, index, count },
      actor: { type: 'user', id: 'u-1', name: 'Ada' },
      request_id: `request-${id}`,
      occurred_at: '2026-01-02T03:04:05.678Z',
      schema_version: 1,
    },
  }));
}

export async function readAll(store: EventStore, stream: string): Promise<RecordedEvent[]> {
  return collectRead(store.read(stream, { direction: 'forward', from: 'start', maxCount: 1_000_000 }));
}

export async function collectRead(events: AsyncIterable<StoredEvent>): Promise<RecordedEvent[]> {
  const all: RecordedEvent[] = [];
  for await (const event of events) all.push(ownEvent(event));
  return all;
}

export type Settled =
  | { readonly kind: 'appended'; readonly revision: number }
  | { readonly kind: 'conflict'; readonly actual: number | 'no_stream' };

/** Reads until the store answers: on a busy machine, a hostile one may say that it cannot be read now. */
async function readSurely(store: EventStore, stream: string): Promise<RecordedEvent[]> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await readAll(store, stream);
    } catch (error) {
      if (attempt === 5 || !(error instanceof ServiceError) || error.code !== 'unavailable') throw error;
    }
  }
}

/** The revision of the last of `events`, if all of them are in the stream one after the other. */
export async function findEvents(
  store: EventStore,
  stream: string,
  events: readonly ProposedEvent[],
): Promise<number | undefined> {
  const all = await readSurely(store, stream);
  const at = all.findIndex(({ id }) => id === events[0]?.id);
  if (at < 0) return undefined;
  const stands = events.every(({ id }, index) => all[at + index]?.id === id);
  return stands ? all[at + events.length - 1]?.revision : undefined;
}

/** Appends until the outcome is certain, as the gateway does. */
export async function appendSurely(
  store: EventStore,
  stream: string,
  expected: ExpectedRevision,
  events: readonly ProposedEvent[],
): Promise<Settled> {
  let doubtful = false;
  for (let attempt = 0; attempt < 200; attempt += 1) {
    const outcome = await store.append(stream, expected, events);
    switch (outcome.kind) {
      case 'appended':
        return { kind: 'appended', revision: outcome.revision };
      case 'conflict': {
        if (!doubtful) return { kind: 'conflict', actual: outcome.actual };
        const revision = await findEvents(store, stream, events);
        return revision === undefined ? { kind: 'conflict', actual: outcome.actual } : { kind: 'appended', revision };
      }
      case 'unknown': {
        doubtful = true;
        const revision = await findEvents(store, stream, events);
        if (revision !== undefined) return { kind: 'appended', revision };
        break;
      }
      case 'unavailable':
        break;
      case 'refused':
        throw new Error(`the store refuses an append to ${stream}: ${outcome.cause}`);
      default: {
        const never: never = outcome;
        throw new Error(`unknown outcome ${JSON.stringify(never)}`);
      }
    }
    await delay(1 + (attempt % 5));
  }
  throw new Error(`the outcome of an append to ${stream} did not settle`);
}

/** Appends at the end of a stream, even while others append. */
export async function appendAtEnd(
  store: EventStore,
  stream: string,
  events: readonly ProposedEvent[],
): Promise<number> {
  let expected: number | 'no_stream' = 'no_stream';
  for (let attempt = 0; attempt < 1_000; attempt += 1) {
    const settled = await appendSurely(store, stream, expected, events);
    if (settled.kind === 'appended') return settled.revision;
    expected = settled.actual;
  }
  throw new Error(`every append to ${stream} is a conflict`);
}

export const isDrop = (error: unknown): boolean => error instanceof ServiceError && error.code === 'unavailable';

/**
 * Follows streams until `done` returns true; subscribes again after drops and leaves out repeats. @returns the events
 * in order of delivery, and every point that a client could have stored.
 */
export async function collectLog(
  store: EventStore,
  streams: readonly string[],
  after: ResumePoint | 'start',
  done: (events: readonly RecordedEvent[], item: LogItem) => boolean,
  timeoutMs = 20_000,
): Promise<{ events: RecordedEvent[]; points: ResumePoint[] }> {
  const stop = AbortSignal.timeout(timeoutMs);
  const events: RecordedEvent[] = [];
  const points: ResumePoint[] = [];
  let point = after;
  let seen = after === 'start' ? -1 : passedBy(after);
  while (!stop.aborted) {
    try {
      for await (const item of store.subscribe({ streams, after: point, signal: stop })) {
        if (item.kind === 'events') {
          for (const event of item.events) {
            if (event.position <= seen) continue;
            seen = event.position;
            point = { commit: event.position, prepare: event.position };
            events.push(ownEvent(event));
            points.push(point);
          }
        } else if (item.kind === 'checkpoint') {
          point = item.point;
          points.push(point);
        }
        if (done(events, item)) return { events, points };
      }
    } catch (error) {
      if (!isDrop(error)) throw error;
      await delay(2);
    }
  }
  throw new Error(
    `the subscription to ${streams.join(', ')} did not get there in ${timeoutMs} ms; it has ${events.length} events`,
  );
}
