/**
 * The JSON of an event and its size, computed once for the gateway, the append limits and the adapter that writes it.
 * Cached by event object, which is immutable. Each adapter decides how it stores these texts.
 */
import type { ProposedEvent } from '../kernel/event.js';

interface EventJson {
  readonly data: string;
  readonly metadata: string;
  /** UTF-8 bytes of data and metadata. */
  readonly bytes: number;
}

const made = new WeakMap<ProposedEvent, EventJson>();

/** Data and metadata of an event as JSON. */
export function eventJson(event: ProposedEvent): EventJson {
  const known = made.get(event);
  if (known !== undefined) return known;
  const [data, metadata] = [JSON.stringify(event.data), JSON.stringify(event.metadata)];
  const json = { data, metadata, bytes: Buffer.byteLength(data) + Buffer.byteLength(metadata) };
  made.set(event, json);
  return json;
}

/** UTF-8 bytes of data and metadata as JSON. */
export const eventBytes = (event: ProposedEvent): number => eventJson(event).bytes;

/** UTF-8 bytes of the whole event as JSON: data, metadata, id, type and the keys around them. */
export function wholeEventBytes(event: ProposedEvent): number {
  const head = JSON.stringify({ id: event.id, type: event.type });
  return Buffer.byteLength(head) + ',"data":,"metadata":'.length + eventBytes(event);
}
