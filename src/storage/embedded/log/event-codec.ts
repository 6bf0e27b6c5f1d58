/**
 * An event as bytes: one JSON array whose envelope has no keys. Not a schema: the data is kept as it is.
 *
 * Why not MessagePack with shared structures, which decodes twice as fast: its dictionary is a second truth beside the
 * events, and it changes data (a `__proto__` key, a lone surrogate). JSON is what the other adapter stores as well.
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

/** An event that only lacks its place: made before the group commit, so that the group decides quickly. */
export interface EncodedEvent {
  readonly id: string;
  readonly tail: string;
  readonly bytes: number;
}

export function encodeEvent(event: ProposedEvent): EncodedEvent {
  const { command, actor, request_id, occurred_at, schema_version, ...rest } = event.metadata;
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
    Object.keys(rest).length === 0 ? 0 : rest,
  ]);
  const tail = `${envelope.slice(1, -1)},${dataJson(event)}]`;
  return { id: event.id, tail, bytes: Buffer.byteLength(tail) };
}

/** `recordedAt`: store clock, milliseconds since the epoch; what `$maxAge` counts from. */
export function placeEvent(event: EncodedEvent, position: number, recordedAt: number): Buffer {
  return Buffer.from(`[${position},${recordedAt},${event.tail}`);
}

/** The head of a stored event, for those who need no more of it. */
export interface EventHead {
  readonly id: string;
  readonly position: number;
  readonly recordedAt: number;
}

export function decodeHead(text: string): EventHead {
  const stored = JSON.parse(text) as Stored;
  return { position: stored[0], recordedAt: stored[1], id: stored[2] };
}

/** Milliseconds since the epoch at which the event was appended, without decoding all of it. */
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
