/**
 * Decodes the bytes of a subscription message directly into a recorded event. The client package creates several
 * objects per field, which is most of the cost of following a long log. Handles only events as this service writes
 * them; the client decodes the rest, and `events.ts` judges it. Pure; the field numbers are those of the server's
 * protocol (`ReadResp`). Implements `event-store.ts` (subscribe).
 */
import type { EventMetadata, RecordedEvent } from '../../kernel/event.js';
import type { JsonObject } from '../../kernel/json.js';

/** A protobuf tag: field number and wire type; type 0 is a varint, type 2 is bytes with their length. */
const tag = (field: number, wireType: 0 | 2): number => field * 8 + wireType;
const inResponse = { event: tag(1, 2) };
const inReadEvent = { event: tag(1, 2), commit: tag(3, 0), noPosition: tag(4, 2) };
const inRecord = {
  id: tag(1, 2),
  stream: tag(2, 2),
  revision: tag(3, 0),
  prepare: tag(4, 0),
  commit: tag(5, 0),
  facts: tag(6, 2),
  metadata: tag(7, 2),
  data: tag(8, 2),
};
const inId = { text: tag(2, 2) };
const inStream = { name: tag(3, 2) };
const inFact = { name: tag(1, 2), value: tag(2, 2) };

/** Never leaves this file. */
class Unusual extends Error {}

/** The bytes of a message and the read offset. Nested messages are read in place with the same cursor. */
interface Cursor {
  readonly bytes: Buffer;
  at: number;
}

function number(cursor: Cursor): number {
  let value = 0;
  for (let scale = 1; ; scale *= 128) {
    const byte = cursor.bytes[cursor.at];
    if (byte === undefined) throw new Unusual();
    cursor.at += 1;
    value += (byte & 0x7f) * scale;
    if (byte < 0x80) break;
  }
  // Also refuses the revision of a tombstone. Two values must never become the same number.
  if (value > Number.MAX_SAFE_INTEGER) throw new Unusual();
  return value;
}

/** The end of the next length-prefixed bytes. */
function end(cursor: Cursor, within: number): number {
  const length = number(cursor);
  if (cursor.at + length > within) throw new Unusual();
  return cursor.at + length;
}

function text(cursor: Cursor, within: number): string {
  const from = cursor.at;
  cursor.at = within;
  return cursor.bytes.toString('utf8', from, within);
}

/** The text of a message whose only field is a text. */
function onlyText(cursor: Cursor, expected: number, within: number): string {
  if (number(cursor) !== expected) throw new Unusual();
  const last = end(cursor, within);
  if (last !== within) throw new Unusual();
  return text(cursor, last);
}

function recordedEvent(cursor: Cursor, within: number): RecordedEvent {
  let [id, type, stream, contentType] = ['', '', '', ''];
  let [revision, position] = [0, 0];
  let [metadata, data]: [EventMetadata | undefined, JsonObject | undefined] = [undefined, undefined];
  while (cursor.at < within) {
    switch (number(cursor)) {
      case inRecord.id:
        id = onlyText(cursor, inId.text, end(cursor, within));
        break;
      case inRecord.stream:
        stream = onlyText(cursor, inStream.name, end(cursor, within));
        break;
      case inRecord.revision:
        revision = number(cursor);
        break;
      case inRecord.prepare:
        number(cursor);
        break;
      case inRecord.commit:
        position = number(cursor);
        break;
      case inRecord.facts: {
        const last = end(cursor, within);
        if (number(cursor) !== inFact.name) throw new Unusual();
        const name = text(cursor, end(cursor, last));
        const value = onlyText(cursor, inFact.value, last);
        if (name === 'type') type = value;
        else if (name === 'content-type') contentType = value;
        break;
      }
      case inRecord.metadata:
        metadata = JSON.parse(text(cursor, end(cursor, within))) as EventMetadata;
        break;
      case inRecord.data:
        data = JSON.parse(text(cursor, end(cursor, within))) as JsonObject;
        break;
      default:
        throw new Unusual();
    }
  }
  const ours = contentType === 'application/json' && type !== '' && !type.startsWith('$') && !stream.startsWith('$');
  if (!ours || id === '' || metadata === undefined || data === undefined) throw new Unusual();
  return { id, type, data, metadata, stream, revision, position };
}

/** The event of a message, or undefined for any other message and for an event that this service did not write. */
export function readEventOf(message: Buffer): RecordedEvent | undefined {
  // A tag this small is one byte.
  if (message[0] !== inResponse.event) return undefined;
  const cursor: Cursor = { bytes: message, at: 1 };
  try {
    let event: RecordedEvent | undefined;
    if (end(cursor, message.length) !== message.length) return undefined;
    while (cursor.at < message.length) {
      switch (number(cursor)) {
        case inReadEvent.event:
          event = recordedEvent(cursor, end(cursor, message.length));
          break;
        case inReadEvent.commit:
          number(cursor);
          break;
        case inReadEvent.noPosition:
          cursor.at = end(cursor, message.length);
          break;
        default:
          // A link to an event, or a field of a newer server.
          return undefined;
      }
    }
    return event;
  } catch {
    // Unusual, or not JSON: the client decodes it.
    return undefined;
  }
}
