/**
 * Reads the log: one stream, or everything from a position on. Shared by the process that writes and processes that
 * only read (`open-for-reading.ts`). Implements `docs/architecture.md#storage`.
 */
import { yieldToEventLoop } from '../../../kernel/background.js';
import { ServiceError } from '../../../kernel/errors.js';
import type { StoredEvent } from '../../../kernel/event.js';
import { bounds } from '../../bounds.js';
import type { LogReader, ReadOptions } from '../../event-store.js';
import { decodeEvent, recordedAtOf } from './event-codec.js';
import { eventKey, readCounters, readStreamRecord, revisionOf, type LogReads, type StreamRecord } from './layout.js';
import { subscribeLog, type WakeUp } from './subscription.js';
import { tuning } from '../tuning.js';

function unavailable(error: unknown): ServiceError {
  if (error instanceof ServiceError) return error;
  return new ServiceError('unavailable', 'The event store cannot be read now.', { cause: error });
}

/** @throws ServiceError `unavailable` for anything that `work` throws */
export async function answered<T>(work: () => T | Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw unavailable(error);
  }
}

async function* translated<T>(inner: AsyncGenerator<T, void, void>): AsyncGenerator<T, void, void> {
  try {
    yield* inner;
  } catch (error) {
    throw unavailable(error);
  }
}

async function* eventsOf(slices: AsyncIterable<readonly StoredEvent[]>): AsyncGenerator<StoredEvent, void, void> {
  for await (const slice of slices) for (const event of slice) yield event;
}

export interface LogReading {
  readonly environment: LogReads;
  /** The time that retentions use, in milliseconds since the epoch. */
  now(): number;
  readonly wakeUp: WakeUp;
}

export function readLog({ environment, now, wakeUp }: LogReading): LogReader {
  return {
    read: (stream, options) => translated(eventsOf(readSlices(environment, stream, options, now))),
    subscribe: (options) => translated(subscribeLog(environment, wakeUp, options)),
    headPosition: () => answered(() => readCounters(environment.get).position),
  };
}

/** The revisions that a read covers: from `from` (inclusive) to `to` (exclusive), in either direction. */
interface Window {
  readonly from: number;
  readonly to: number;
}

function visibleWindow(record: StreamRecord, options: ReadOptions): Window {
  const { maxCount } = record.retention;
  const oldest = maxCount === undefined ? 0 : Math.max(0, record.head - maxCount + 1);
  const next = record.head + 1;
  if (options.direction === 'forward') {
    const from = typeof options.from === 'number' ? options.from : 0;
    return { from: Math.max(from, oldest), to: next };
  }
  const from = typeof options.from === 'number' ? options.from : record.head;
  return { from: oldest, to: Math.min(from + 1, next) };
}

/** Yields slices of decoded events, which takes far fewer async steps than one event at a time. */
async function* readSlices(
  environment: LogReads,
  stream: string,
  options: ReadOptions,
  now: () => number,
): AsyncGenerator<readonly StoredEvent[], void, void> {
  const record = readStreamRecord(environment.get, stream);
  if (record === undefined) return;
  let { from, to } = visibleWindow(record, options);
  const reverse = options.direction === 'backward';
  const { maxAgeSeconds } = record.retention;
  const since = maxAgeSeconds === undefined ? 0 : now() - maxAgeSeconds * 1000;
  let wanted = options.maxCount;
  while (wanted > 0 && from < to) {
    const slice = environment.texts('events', {
      from: eventKey(record.number, from),
      to: eventKey(record.number, to),
      reverse,
      limit: Math.min(wanted, tuning.sliceEntries),
      maxBytes: bounds.itemBytes,
    });
    if (slice.length === 0) return;
    const events: StoredEvent[] = [];
    for (const { key, text } of slice) {
      if (since > 0 && recordedAtOf(text) < since) continue;
      events.push(decodeEvent(text, stream, revisionOf(key)));
    }
    wanted -= events.length;
    if (events.length > 0) yield events;
    const last = slice.at(-1);
    if (last === undefined) return;
    if (reverse) to = revisionOf(last.key);
    else from = revisionOf(last.key) + 1;
    if (wanted > 0 && from < to) await yieldToEventLoop();
  }
}
