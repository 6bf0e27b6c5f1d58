/**
 * Reads one stream forward or backward in slices and leaves out the events that `$maxAge` and `$maxCount` hide. Holds
 * no LMDB transaction between slices. Implements `event-store.ts` (read, Retention).
 */
import { yieldToEventLoop } from '../../../kernel/background.js';
import type { RecordedEvent } from '../../../kernel/event.js';
import type { ReadOptions } from '../../event-store.js';
import { decodeEvent, recordedAtOf } from './event-codec.js';
import { eventKey, readStreamRecord, revisionOf, type LogEnvironment, type StreamRecord } from './layout.js';
import { bounds } from '../../bounds.js';
import { tuning } from '../tuning.js';

/** The revisions that a read covers: from `from`, inclusive, to `to`, exclusive, in either direction. */
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

/** Yields slices of decoded events, which needs far fewer async steps than one event at a time. */
export async function* readSlices(
  environment: LogEnvironment,
  stream: string,
  options: ReadOptions,
  now: () => number,
): AsyncGenerator<readonly RecordedEvent[], void, void> {
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
    const events: RecordedEvent[] = [];
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
