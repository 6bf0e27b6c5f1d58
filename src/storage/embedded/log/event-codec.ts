/**
 * An event as bytes: one JSON array whose envelope has no keys. Not a schema: the data is stored as it is.
 *
 * MessagePack with shared structures would decode twice as fast, but its dictionary would have to be stored beside the
 * events, and it changes some data (a `__proto__` key, a lone surrogate). EventStoreDB stores JSON as well.
 */
import type { Actor, EventMetadata, ProposedEvent, RecordedEvent } from '../../../kernel/event.js';
import type { JsonObject } from '../../../kernel/json.js';
import { dataJson } from '../../event-json.js';

type MetadataRest = Omit<EventMetadata, 'command' | 'actor' | 'request_id' | 'occurred_at' | 'schema_version'>;

type Stored = readonly [
  position: number,
  recordedAt: number,
  id: string,
  type: string,
  commandId: string,
  commandIndex: number,
  commandCount: number,
  actorType: Actor['type'],
  actorId: string,
  actorName: string,
  requestId: string,
  occurredAt: string,
  schemaVersion: number,
  rest: MetadataRest | 0,
  data: JsonObject,
];

/** An event without its place. Encoded before the group commit, so that the group decides quickly. */
export interface EncodedEvent {
  readonly id: string;
  readonly tail: string;
  readonly bytes: number;
}

export function encodeEvent(event: ProposedEvent): EncodedEvent {
  const { command, actor, request_id, occurred_at, schema_version } = event.metadata;
  const envelope = JSON.stringify([
    event.id,
    event.type,
    command.id,
    command.index,
    command.count,
    actor.type,
    actor.id,
    actor.name,
    request_id,
    occurred_at,
    schema_version,
    restOf(event.metadata),
  ]);
  const tail = `${envelope.slice(1, -1)},${dataJson(event)}]`;
  return { id: event.id, tail, bytes: Buffer.byteLength(tail) };
}

const written: ReadonlySet<string> = new Set(['command', 'actor', 'request_id', 'occurred_at', 'schema_version']);

/** What else the metadata holds, 0 for nothing. A loop, because the rest of a destructuring costs as much as all else here. */
function restOf(metadata: EventMetadata): MetadataRest | 0 {
  let rest: Record<string, unknown> | undefined;
  for (const key of Object.keys(metadata)) {
    if (!written.has(key)) (rest ??= {})[key] = Reflect.get(metadata, key);
  }
  return rest ?? 0;
}

/** @param recordedAt milliseconds since the epoch on the store's clock, for `$maxAge` */
export function placeEvent(event: EncodedEvent, position: number, recordedAt: number): Buffer {
  return Buffer.from(`[${position},${recordedAt},${event.tail}`);
}

/** The first fields of a stored event. */
export interface EventHead {
  readonly id: string;
  readonly position: number;
  readonly recordedAt: number;
}

export function decodeHead(text: string): EventHead {
  const stored = JSON.parse(text) as Stored;
  return { position: stored[0], recordedAt: stored[1], id: stored[2] };
}

/** When the event was appended, in milliseconds since the epoch, without decoding all of it. */
export function recordedAtOf(text: string): number {
  const comma = text.indexOf(',');
  return Number(text.slice(comma + 1, text.indexOf(',', comma + 1)));
}

export function decodeEvent(text: string, stream: string, revision: number): RecordedEvent {
  const stored = JSON.parse(text) as Stored;
  const metadata: EventMetadata = {
    command: { id: stored[4], index: stored[5], count: stored[6] },
    actor: { type: stored[7], id: stored[8], name: stored[9] },
    request_id: stored[10],
    occurred_at: stored[11],
    schema_version: stored[12],
  };
  return {
    id: stored[2],
    type: stored[3],
    data: stored[14],
    metadata: stored[13] === 0 ? metadata : { ...metadata, ...stored[13] },
    stream,
    revision,
    position: stored[0],
  };
}
