/**
 * An event as bytes: one JSON array with the data and metadata exactly as passed in.
 *
 * MessagePack with shared structures would decode twice as fast, but its dictionary would have to be stored beside the
 * events, and it changes some data (a `__proto__` key, a lone surrogate). EventStoreDB stores JSON as well.
 */
import type { ProposedEvent, StoredEvent } from '../../../kernel/event.js';
import { storedEvent } from '../../broken-log.js';
import { eventJson } from '../../event-json.js';

type Stored = readonly [
  position: number,
  recordedAt: number,
  id: string,
  type: string,
  metadata: unknown,
  data: unknown,
];

/** An event without its position. Encoded before the group commit, to keep the group short. */
export interface EncodedEvent {
  readonly id: string;
  readonly tail: string;
  readonly bytes: number;
}

export function encodeEvent(event: ProposedEvent): EncodedEvent {
  const { data, metadata, bytes } = eventJson(event);
  const tail = `${JSON.stringify(event.id)},${JSON.stringify(event.type)},${metadata},${data}]`;
  return { id: event.id, tail, bytes };
}

/** @param recordedAt milliseconds since the epoch on the store's clock, for `$maxAge` */
export function placeEvent(event: EncodedEvent, position: number, recordedAt: number): Buffer {
  return Buffer.from(`[${position},${recordedAt},${event.tail}`);
}

/** The first fields of a stored event. */
export function decodeHead(text: string): { readonly position: number; readonly id: string } {
  const [position, , id] = JSON.parse(text) as Stored;
  return { position, id };
}

/** When the event was appended, in milliseconds since the epoch, without decoding the whole event. */
export function recordedAtOf(text: string): number {
  const comma = text.indexOf(',');
  return Number(text.slice(comma + 1, text.indexOf(',', comma + 1)));
}

export function decodeEvent(text: string, stream: string, revision: number): StoredEvent {
  const [position, , id, type, metadata, data] = JSON.parse(text) as Stored;
  return storedEvent({ id, type, data, metadata, stream, revision, position });
}
