/** Reads of the test server: of one stream and of the whole log, in both directions. Not subscriptions. */
import { status } from '@grpc/grpc-js';
import { recordedMessage, Refusal, streamDeleted } from './calls.js';
import { indexAt, type EventLog, type LogEvent } from './log.js';
import type { ReadOptions } from './read-options.js';
import type { Plain } from './wire.js';

const unexpected = (kind: string): Refusal => new Refusal(status.UNKNOWN, `Unexpected ${kind}Result: Error`);

/** An event as an answer to a read; links are followed on request. */
export function eventMessage(log: EventLog, event: LogEvent, options: ReadOptions): Plain {
  const structured = options.structuredIds === true;
  const commitPosition = event.position;
  if (!options.resolveLinks || event.type !== '$>') {
    return { event: { event: recordedMessage(event, structured), commitPosition } };
  }
  const [revision, ...name] = Buffer.from(event.data).toString('utf8').split('@');
  const linked = log.stream(name.join('@'))?.events[Number(revision)];
  const target = linked === undefined ? {} : { event: recordedMessage(linked, structured) };
  return { event: { ...target, link: recordedMessage(event, structured), commitPosition } };
}

function* take<T>(items: Iterable<T>, count: number): Generator<T> {
  let left = count;
  if (left <= 0) return;
  for (const item of items) {
    yield item;
    left -= 1;
    if (left <= 0) return;
  }
}

function* streamEvents(log: EventLog, name: string, options: ReadOptions): Generator<LogEvent> {
  const streamState = log.stream(name);
  const { from } = options.target as { readonly from: number | 'start' | 'end' };
  if (streamState === undefined) return;
  const { events, limits } = streamState;
  const head = events.length - 1;
  const first = from === 'start' ? 0 : from === 'end' ? head : from;
  if (options.backwards) {
    for (let revision = Math.min(first, head); revision >= 0; revision -= 1) {
      const event = events[revision];
      if (event !== undefined && log.isVisible(event, limits)) yield event;
    }
    return;
  }
  for (let revision = Math.max(first, limits.from); revision <= head; revision += 1) {
    const event = events[revision];
    if (event !== undefined && log.isVisible(event, limits)) yield event;
  }
}

function* readStream(log: EventLog, name: string, options: ReadOptions): Generator<Plain> {
  const { from } = options.target as { readonly from: number | 'start' | 'end' };
  const count = options.count ?? 0;
  if (count === 0 || (from === 'end' && !options.backwards)) throw unexpected('ReadStream');
  if (log.isTombstoned(name)) throw streamDeleted(name);
  const streamState = log.stream(name);
  // A deleted stream that an empty append brought back exists but has no visible events.
  if (streamState === undefined || streamState.events.length === 0 || streamState.limits.softDeleted) {
    yield { streamNotFound: { streamIdentifier: { streamName: name } } };
    return;
  }
  for (const event of take(streamEvents(log, name, options), count)) yield eventMessage(log, event, options);
  if (options.tellLast) yield { lastStreamPosition: streamState.events.length - 1 };
}

function* allEvents(log: EventLog, from: number, backwards: boolean): Generator<LogEvent> {
  let index = indexAt(log.all, from);
  if (backwards) {
    for (index -= 1; index >= 0; index -= 1) {
      const event = log.all[index];
      if (event !== undefined) yield event;
    }
    return;
  }
  for (; index < log.all.length; index += 1) {
    const event = log.all[index];
    if (event !== undefined) yield event;
  }
}

/** @returns undefined for a position that no record begins at */
export function startPosition(log: EventLog, from: { readonly commit: number } | 'start' | 'end'): number | undefined {
  if (from === 'start') return 0;
  if (from === 'end') return Infinity;
  const { commit } = from;
  return commit === 0 || commit > log.head() || log.isRecord(commit) ? commit : undefined;
}

/** The answers to a read that is not a subscription; undefined when it never ends. @throws Refusal while iterated */
export function readMessages(log: EventLog, options: ReadOptions): Iterable<Plain> | undefined {
  const { target } = options;
  if (options.structuredIds === undefined) return undefined;
  if (target.kind === 'stream') return readStream(log, target.name, options);
  if (options.count === 0) return undefined;
  const from = startPosition(log, target.from);
  const { filter } = target;
  if (from === undefined) throw unexpected(filter === undefined ? 'ReadAll' : 'FilteredReadAll');
  function* messages(start: number): Generator<Plain> {
    function* matching(): Generator<LogEvent> {
      for (const event of allEvents(log, start, options.backwards)) {
        if (filter === undefined || filter.matches(event)) yield event;
      }
    }
    for (const event of take(matching(), options.count ?? 0)) yield eventMessage(log, event, options);
  }
  return messages(from);
}
