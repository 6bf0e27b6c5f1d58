/**
 * Cursors: the place of a command's last event as text for clients. A cursor names the installation, the place and the event's
 * id, so that one from another or a restored log is recognised. A command may have several items: before its last one, a place is
 * a fraction below the position of its last event. Pure. Implements `docs/contract/automation.md#event-feed`.
 */
import { createHash } from 'node:crypto';
import { crc32 } from 'node:zlib';
import { agentStreams, streams, type StoredEvent } from '../kernel/event.js';

/** The content of a cursor. */
export interface CursorPlace {
  readonly stream: string;
  readonly revision: number;
  /** See `placeWith`. */
  readonly position: number;
  /** The first characters of the event's id. */
  readonly event: string;
}

export interface Cursors {
  /** @param left how many items of the event's command follow */
  of(event: StoredEvent, left?: number): string;
  /** `malformed`: not a cursor; `foreign`: from another installation. */
  read(cursor: string): CursorPlace | 'malformed' | 'foreign';
}

/** The streams that the feed reads. Their order must not change: cursors contain the index. */
export const feedStreams: readonly string[] = [
  streams.fleet,
  streams.accounts,
  streams.service,
  streams.signins,
  ...agentStreams,
  streams.status,
];

/** The form of a cursor behind the last item of its command; each higher form leaves one more item. */
const form = 1;
/** A command has up to this many items before its last one. */
const leftMax = 7;

/**
 * The position of the place with `left` items to go in the command that ends at `position`; keeps all places in order.
 */
export const placeWith = (position: number, left: number): number => position - left / (leftMax + 1);

const at = { form: 0, store: 1, stream: 7, revision: 8, position: 14, event: 21, check: 29, end: 33 } as const;
const idBytes = at.check - at.event;

export function createCursors(installationId: string): Cursors {
  const store = createHash('sha256')
    .update(installationId)
    .digest()
    .subarray(0, at.stream - at.store);
  return {
    of({ stream, revision, position, id }, left = 0) {
      const bytes = Buffer.alloc(at.end);
      bytes[at.form] = form + left;
      store.copy(bytes, at.store);
      bytes[at.stream] = feedStreams.indexOf(stream);
      bytes.writeUIntBE(revision, at.revision, at.position - at.revision);
      // Positions have 53 bits: the first byte holds what does not fit into six.
      bytes[at.position] = Math.floor(position / 2 ** 48);
      bytes.writeUIntBE(position % 2 ** 48, at.position + 1, 6);
      bytes.write(shortId(id), at.event, 'hex');
      bytes.writeUInt32BE(crc32(bytes.subarray(0, at.check)), at.check);
      return bytes.toString('base64url');
    },
    read(cursor) {
      const bytes = Buffer.from(cursor, 'base64url');
      const left = (bytes[at.form] ?? 0) - form;
      const isOurs = bytes.length === at.end && bytes.toString('base64url') === cursor;
      if (!isOurs || left < 0 || left > leftMax) return 'malformed';
      if (bytes.readUInt32BE(at.check) !== crc32(bytes.subarray(0, at.check))) return 'malformed';
      const stream = feedStreams[bytes[at.stream] ?? feedStreams.length];
      if (stream === undefined) return 'malformed';
      if (!bytes.subarray(at.store, at.stream).equals(store)) return 'foreign';
      return {
        stream,
        revision: bytes.readUIntBE(at.revision, at.position - at.revision),
        position: placeWith((bytes[at.position] ?? 0) * 2 ** 48 + bytes.readUIntBE(at.position + 1, 6), left),
        event: bytes.toString('hex', at.event, at.check),
      };
    },
  };
}

/** The part of an event's id that a cursor contains. */
export const shortId = (id: string): string => id.replaceAll('-', '').slice(0, 2 * idBytes);
