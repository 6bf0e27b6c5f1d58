/** An event as proposed by a client, with the checks of the real server. */
import { asPlain, uuidText } from './calls.js';
import type { NewEvent } from './log.js';
import type { Plain } from './wire.js';

const none = new Uint8Array();

/** @throws Error with the text that 23.10.8 answers */
export function proposedEvent(message: Plain): NewEvent {
  const id = asPlain(message['id']);
  if (id === undefined) throw new Error("Value cannot be null. (Parameter 'dto')");
  const text = uuidText(id);
  if (/^[0-]+$/.test(text)) throw new Error("Empty eventId provided. (Parameter 'eventId')");
  const metadata = asPlain(message['metadata']) ?? {};
  const type = metadata['type'];
  const contentType = metadata['content-type'];
  if (type === undefined || contentType === undefined) {
    throw new Error('The given key was not present in the dictionary.');
  }
  if (type === '') throw new Error("Empty eventType provided. (Parameter 'eventType')");
  return {
    id: text,
    type: String(type),
    isJson: contentType === 'application/json',
    data: (message['data'] as Uint8Array | undefined) ?? none,
    metadata: (message['customMetadata'] as Uint8Array | undefined) ?? none,
  };
}
