/**
 * The JSON of an event and its size, computed once for the gateway, the limits of an append and the adapter that writes
 * it. Both are cached by event object, which is immutable. Not a storage format: that is up to each adapter.
 */
import type { ProposedEvent } from '../kernel/event.js';

interface Texts {
  readonly data: string;
  readonly metadata: string;
}

const sizes = new WeakMap<ProposedEvent, number>();
const texts = new WeakMap<ProposedEvent, Texts>();

const textsOf = ({ data, metadata }: ProposedEvent): Texts => ({
  data: JSON.stringify(data),
  metadata: JSON.stringify(metadata),
});

const bytesOf = ({ data, metadata }: Texts): number => Buffer.byteLength(data) + Buffer.byteLength(metadata);

/** UTF-8 bytes of data and metadata as JSON. Caches the number but not the text, as the event may wait in a queue. */
export function eventBytes(event: ProposedEvent): number {
  const size = sizes.get(event) ?? bytesOf(textsOf(event));
  sizes.set(event, size);
  return size;
}

/** Computes and caches the JSON of an event that is about to be appended. */
export function serialise(event: ProposedEvent): void {
  const text = textsOf(event);
  texts.set(event, text);
  sizes.set(event, bytesOf(text));
}

export const dataJson = (event: ProposedEvent): string => texts.get(event)?.data ?? JSON.stringify(event.data);

export const metadataJson = (event: ProposedEvent): string =>
  texts.get(event)?.metadata ?? JSON.stringify(event.metadata);

/** UTF-8 bytes of the whole event as JSON: data and metadata, the id, the type and the keys around all four. */
export function wholeEventBytes(event: ProposedEvent): number {
  const head = JSON.stringify({ id: event.id, type: event.type });
  return Buffer.byteLength(head) + ',"data":,"metadata":'.length + eventBytes(event);
}
