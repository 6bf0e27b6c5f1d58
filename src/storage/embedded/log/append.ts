/**
 * Decides one append inside a group commit: checks the expected revision, recognises repeats and assigns positions to
 * new events. The group writer commits them. Implements `event-store.ts` (append), with EventStoreDB's rules.
 */
import { createLru } from '../../../kernel/lru.js';
import type { AppendOutcome, ExpectedRevision } from '../../event-store.js';
import { decodeHead, placeEvent, type EncodedEvent } from './event-codec.js';
import {
  encodeAppend,
  ensureStream,
  eventKey,
  positionKey,
  putCounters,
  putStreamRecord,
  readCounters,
  readStreamRecord,
  type LogBatch,
  type StreamRecord,
} from './layout.js';
import { tuning } from '../tuning.js';

/**
 * Recent appends with expected revision `any`, by stream and first event id, so that a quick repeat gets the answer of
 * the first attempt. Bounded, and lost on restart, as in EventStoreDB. An entry is only a hint: the stored ids decide.
 */
export interface RecentAppends {
  find(stream: string, firstId: string): number | undefined;
  remember(stream: string, firstId: string, revision: number): void;
}

export function createRecentAppends(): RecentAppends {
  const revisions = createLru<number>(tuning.anyAppends);
  const keyOf = (stream: string, id: string): string => `${id}/${stream}`;
  return {
    find: (stream, firstId) => revisions.get(keyOf(stream, firstId)),
    remember: (stream, firstId, revision) => revisions.set(keyOf(stream, firstId), revision),
  };
}

/** The position of the last of `events` if exactly these events are stored at `revision`, else undefined. */
function storedAt(
  batch: LogBatch,
  record: StreamRecord,
  revision: number,
  events: readonly EncodedEvent[],
): number | undefined {
  if (revision + events.length - 1 > record.head) return undefined;
  let position: number | undefined;
  for (const [index, event] of events.entries()) {
    const stored = batch.get('events', eventKey(record.number, revision + index));
    if (stored === undefined) return undefined;
    const head = decodeHead(stored.toString('utf8'));
    if (head.id !== event.id) return undefined;
    position = head.position;
  }
  return position;
}

export interface Decision {
  readonly outcome: AppendOutcome;
  /** False for conflicts and repeats, which add nothing to the batch. */
  readonly wrote: boolean;
}

/** `now`: milliseconds since the epoch. */
export function decideAppend(
  batch: LogBatch,
  recent: RecentAppends,
  now: number,
  stream: string,
  expected: ExpectedRevision,
  events: readonly EncodedEvent[],
): Decision {
  const existing = readStreamRecord(batch.get, stream);
  const head = existing?.head ?? -1;
  const conflict: Decision = {
    outcome: { kind: 'conflict', actual: head < 0 ? 'no_stream' : head },
    wrote: false,
  };
  const firstId = events[0]?.id ?? '';

  const repeated = (revision: number): Decision | undefined => {
    const position = existing === undefined ? undefined : storedAt(batch, existing, revision, events);
    if (position === undefined) return undefined;
    return { outcome: { kind: 'appended', revision: revision + events.length - 1, position }, wrote: false };
  };

  if (expected === 'any') {
    const revision = recent.find(stream, firstId);
    const first = events.slice(0, 1);
    if (revision !== undefined && existing !== undefined && storedAt(batch, existing, revision, first) !== undefined) {
      return repeated(revision) ?? conflict;
    }
  } else {
    const wanted = expected === 'no_stream' ? -1 : expected;
    if (wanted !== head) return repeated(wanted + 1) ?? conflict;
  }

  const record = ensureStream(batch, stream);
  const counters = readCounters(batch.get);
  const revision = head + 1;
  let position = counters.position;
  for (const [index, event] of events.entries()) {
    position += 1;
    batch.put('events', eventKey(record.number, revision + index), placeEvent(event, position, now));
  }
  const first = counters.position + 1;
  const append = { position: first, stream: record.number, revision, count: events.length };
  batch.put('appends', positionKey(first), encodeAppend(append));
  putStreamRecord(batch, stream, { ...record, head: head + events.length });
  putCounters(batch, { ...counters, position });
  if (expected === 'any') recent.remember(stream, firstId, revision);
  return { outcome: { kind: 'appended', revision: head + events.length, position }, wrote: true };
}
