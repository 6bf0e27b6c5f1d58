/**
 * The log of the test server: streams, their metadata, and the decision about every append, delete and tombstone, like
 * 23.10.8. Does not know the wire. Decisions are handed to `persist` before they are answered.
 */
import { randomUUID } from 'node:crypto';

export interface NewEvent {
  readonly id: string;
  readonly type: string;
  readonly isJson: boolean;
  readonly data: Uint8Array;
  readonly metadata: Uint8Array;
}

export interface LogEvent extends NewEvent {
  readonly stream: string;
  /** `tombstoneRevision` for a tombstone. */
  readonly revision: number;
  readonly position: number;
  /** Milliseconds since the epoch. */
  readonly created: number;
}

/** Revision of a tombstone; its exact value, 2^63-1, is not a safe integer. */
export const tombstoneRevision = Number.MAX_VALUE;
const deletedFrom = 2 ** 63;

export type Expected =
  | { readonly kind: 'exact'; readonly revision: number }
  | { readonly kind: 'no_stream' }
  | { readonly kind: 'any' }
  | { readonly kind: 'stream_exists' };

export type Decision =
  /** Without a revision, the stream is still missing; without a position, the events exist but are hidden. */
  | { readonly kind: 'success'; readonly revision: number | undefined; readonly position: number | undefined }
  | { readonly kind: 'wrong'; readonly actual: number | undefined }
  | { readonly kind: 'deleted' };

interface Stream {
  readonly events: LogEvent[];
  tombstone: boolean;
}

export interface Limits {
  readonly from: number;
  /** Milliseconds since the epoch; older events are hidden. */
  readonly notBefore: number;
  readonly softDeleted: boolean;
}

/** One line of the file: the events of one append, or a position without events. */
export type LogRecord =
  | { readonly kind: 'events'; readonly events: readonly LogEvent[] }
  | { readonly kind: 'empty'; readonly position: number };

export interface EventLog {
  append(stream: string, expected: Expected, events: readonly NewEvent[]): Decision;
  softDelete(stream: string, expected: Expected): Decision;
  tombstone(stream: string, expected: Expected): Decision;
  /** @returns undefined for a stream that never existed */
  stream(name: string): { readonly events: readonly LogEvent[]; readonly limits: Limits } | undefined;
  isTombstoned(name: string): boolean;
  isVisible(event: LogEvent, limits: Limits): boolean;
  /** All events in order, including those hidden in their stream. */
  readonly all: readonly LogEvent[];
  head(): number;
  /** Where the next record begins. */
  end(): number;
  /** True when a record begins at the position, even one without events. */
  isRecord(position: number): boolean;
  /** Calls back with the events of every decided append. @returns a function that stops it */
  listen(listener: (events: readonly LogEvent[]) => void): () => void;
  /** Takes in a record of the file at the start. */
  restore(record: LogRecord): void;
}

const metaOf = (stream: string): string => `$$${stream}`;
const isMeta = (stream: string): boolean => stream.startsWith('$$');

function parseMeta(event: LogEvent | undefined): Readonly<Record<string, unknown>> {
  if (event === undefined) return {};
  try {
    const value: unknown = JSON.parse(Buffer.from(event.data).toString('utf8'));
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}

export function createLog(persist: (record: LogRecord) => void, now: () => number = Date.now): EventLog {
  const streams = new Map<string, Stream>();
  const all: LogEvent[] = [];
  const positions = new Set<number>();
  const listeners = new Set<(events: readonly LogEvent[]) => void>();
  /** Where each id was first written since this start, to recognise repeats with `any`. */
  const recent = new Map<string, number>();
  let next = 1000;

  const headOf = (name: string): number => (streams.get(name)?.events.length ?? 0) - 1;
  const isTombstoned = (name: string): boolean =>
    streams.get(name)?.tombstone === true || (isMeta(name) && streams.get(name.slice(2))?.tombstone === true);

  function limitsOf(name: string): Limits {
    const head = headOf(name);
    if (isMeta(name)) return { from: head, notBefore: 0, softDeleted: false };
    const meta = parseMeta(streams.get(metaOf(name))?.events.at(-1));
    const number = (key: string): number | undefined => {
      const value = meta[key];
      return typeof value === 'number' ? value : undefined;
    };
    const before = number('$tb') ?? 0;
    const count = number('$maxCount');
    const age = number('$maxAge');
    return {
      from: Math.max(before, count === undefined ? 0 : head - count + 1),
      notBefore: age === undefined ? 0 : now() - age * 1000,
      softDeleted: before >= deletedFrom - 1024,
    };
  }
  const isVisible = (event: LogEvent, limits: Limits): boolean =>
    event.revision >= limits.from && event.created >= limits.notBefore;

  function take(size: number): number {
    const position = next;
    next += 64 + size;
    positions.add(position);
    return position;
  }

  function keep(events: readonly LogEvent[]): void {
    for (const event of events) {
      const stream = streams.get(event.stream) ?? { events: [], tombstone: false };
      streams.set(event.stream, stream);
      if (event.revision === tombstoneRevision) stream.tombstone = true;
      else {
        stream.events.push(event);
        const key = `${event.id}/${event.stream}`;
        if (!recent.has(key)) recent.set(key, event.revision);
      }
      all.push(event);
    }
  }

  function place(stream: string, events: readonly NewEvent[]): LogEvent[] {
    const first = headOf(stream) + 1;
    return events.map((event, index) => ({
      ...event,
      stream,
      revision: first + index,
      position: take(event.data.length + event.metadata.length),
      created: now(),
    }));
  }

  function write(events: readonly LogEvent[]): void {
    persist({ kind: 'events', events });
    keep(events);
    for (const listener of listeners) listener(events);
  }

  function writeMeta(stream: string, meta: string): number {
    const data = Buffer.from(meta);
    const event = { id: randomUUID(), type: '$metadata', isJson: true, data, metadata: new Uint8Array() };
    const placed = place(metaOf(stream), [event]);
    write(placed);
    return placed[0]?.position ?? 0;
  }

  /** The answer for events that are all stored already from `revision` on. */
  function repeated(name: string, revision: number, events: readonly NewEvent[]): Decision | undefined {
    const stored = streams.get(name)?.events ?? [];
    if (events.length === 0 || !events.every(({ id }, index) => stored[revision + index]?.id === id)) return undefined;
    const last = stored[revision + events.length - 1];
    if (last === undefined) return undefined;
    return {
      kind: 'success',
      revision: last.revision,
      position: isVisible(last, limitsOf(name)) ? last.position : undefined,
    };
  }

  /** Why the events cannot be written; undefined when they can. `actual` is undefined for a missing stream. */
  function refuse(name: string, expected: Expected, events: readonly NewEvent[]): Decision | undefined {
    const head = headOf(name);
    const wrong: Decision = { kind: 'wrong', actual: head < 0 ? undefined : head };
    const { softDeleted } = limitsOf(name);
    switch (expected.kind) {
      case 'stream_exists':
      case 'any': {
        if (expected.kind === 'stream_exists') {
          if (head < 0 && headOf(metaOf(name)) < 0) return wrong;
          if (softDeleted) return { kind: 'deleted' };
        }
        const first = events[0];
        const earlier = first === undefined ? undefined : recent.get(`${first.id}/${name}`);
        return earlier === undefined ? undefined : (repeated(name, earlier, events) ?? wrong);
      }
      default: {
        const wanted = expected.kind === 'exact' ? expected.revision : -1;
        if (wanted === head) return undefined;
        if (wanted > head) return wrong;
        const again = repeated(name, wanted + 1, events);
        if (again !== undefined) return again;
        return expected.kind === 'no_stream' && softDeleted && events.length > 0 ? undefined : wrong;
      }
    }
  }

  return {
    all,
    isTombstoned,
    isVisible,
    head: () => all.at(-1)?.position ?? 0,
    end: () => next,
    isRecord: (position) => positions.has(position),
    stream(name) {
      const stream = streams.get(name);
      return stream === undefined ? undefined : { events: stream.events, limits: limitsOf(name) };
    },
    append(name, expected, events) {
      // Metadata of a tombstoned stream is accepted when there was some before.
      if (isTombstoned(name) && !(isMeta(name) && headOf(name) >= 0 && streams.get(name)?.tombstone !== true)) {
        return { kind: 'deleted' };
      }
      const refused = refuse(name, expected, events);
      if (refused !== undefined) return refused;
      const { softDeleted } = limitsOf(name);
      const head = headOf(name);
      const placed = place(name, events);
      let position = placed.at(-1)?.position;
      if (placed.length > 0) write(placed);
      else {
        position = take(0);
        persist({ kind: 'empty', position });
      }
      if (softDeleted) writeMeta(name, `{"$tb":${head + 1}}`);
      const last = head + events.length;
      return { kind: 'success', revision: last < 0 ? undefined : last, position };
    },
    softDelete(name, expected) {
      if (isTombstoned(name)) return { kind: 'deleted' };
      const head = headOf(name);
      if (head < 0) return { kind: 'wrong', actual: undefined };
      const { softDeleted } = limitsOf(name);
      const refused = softDeleted && expected.kind === 'no_stream' ? undefined : refuse(name, expected, []);
      if (refused !== undefined) return refused;
      return { kind: 'success', revision: head, position: writeMeta(name, '{"$tb":9223372036854775807}') };
    },
    tombstone(name, expected) {
      if (isTombstoned(name)) return { kind: 'deleted' };
      const refused = refuse(name, expected, []);
      if (refused !== undefined) return refused;
      const position = take(0);
      const event: LogEvent = {
        id: randomUUID(),
        stream: name,
        type: '$streamDeleted',
        isJson: false,
        data: new Uint8Array(),
        metadata: new Uint8Array(),
        revision: tombstoneRevision,
        position,
        created: now(),
      };
      write([event]);
      return { kind: 'success', revision: undefined, position };
    },
    listen(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    restore(record) {
      if (record.kind === 'empty') {
        positions.add(record.position);
        next = record.position + 64;
        return;
      }
      for (const event of record.events) {
        positions.add(event.position);
        next = event.position + 64 + event.data.length + event.metadata.length;
      }
      keep(record.events);
      // The cache for `any` does not survive a restart.
      recent.clear();
    },
  };
}

/** The index of the first event at or above a position. */
export function indexAt(all: readonly LogEvent[], position: number): number {
  let low = 0;
  let high = all.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((all[middle]?.position ?? Infinity) < position) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** The log as a node has it that hears of nothing behind a position. */
export function knownUntil(log: EventLog, position: number | undefined): EventLog {
  if (position === undefined) return log;
  const seen = (event: LogEvent): boolean => event.position <= position;
  const all = log.all.filter(seen);
  return {
    ...log,
    all,
    head: () => all.at(-1)?.position ?? 0,
    stream(name) {
      const known = log.stream(name);
      const events = known?.events.filter(seen) ?? [];
      return known === undefined || events.length === 0 ? undefined : { ...known, events };
    },
  };
}
