/**
 * Cursors: the last event of a command as text that a client keeps. It names the store (by the installation), the event's
 * place and its id, so that a cursor of another log, or of a log that was restored, is told from a good one. Pure. Implements
 * `docs/contract/automation.md#event-feed`.
 */
import { createHash } from 'node:crypto';
import { crc32 } from 'node:zlib';
import { agentStreams, streams } from '../kernel/event.js';
import type { StoredEvent } from '../kernel/event.js';

/** What a cursor says of its event. */
export interface CursorPlace {
  readonly stream: string;
  readonly revision: number;
  readonly position: number;
  /** The first characters of the event's id. */
  readonly event: string;
}

export interface Cursors {
  of(event: StoredEvent): string;
  /** The place, or why there is none: it is no cursor at all, or one of another installation. */
  read(cursor: string): CursorPlace | 'malformed' | 'foreign';
}

/** The streams of the feed by the number that stands for each in cursors; a number never changes its meaning. */
const numbered: readonly string[] = [
  streams.fleet,
  streams.accounts,
  streams.service,
  streams.signins,
  ...agentStreams,
];

/** The streams that the feed reads. */
export const feedStreams = numbered;

const form = 1;
const at = { form: 0, store: 1, stream: 7, revision: 8, position: 14, event: 21, check: 29, end: 33 } as const;
const idBytes = at.check - at.event;

/** @param installationId names the store */
export function createCursors(installationId: string): Cursors {
  const store = createHash('sha256')
    .update(installationId)
    .digest()
    .subarray(0, at.stream - at.store);
  return {
    of({ stream, revision, position, id }) {
      const bytes = Buffer.alloc(at.end);
      bytes[at.form] = form;
      store.copy(bytes, at.store);
      bytes[at.stream] = numbered.indexOf(stream);
      bytes.writeUIntBE(revision, at.revision, at.position - at.revision);
      // Positions have 53 bits, one more than six bytes and four bits: the first byte holds what six bytes do not.
      bytes[at.position] = Math.floor(position / 2 ** 48);
      bytes.writeUIntBE(position % 2 ** 48, at.position + 1, 6);
      bytes.write(shortId(id), at.event, 'hex');
      bytes.writeUInt32BE(crc32(bytes.subarray(0, at.check)), at.check);
      return bytes.toString('base64url');
    },
    read(cursor) {
      const bytes = Buffer.from(cursor, 'base64url');
      if (bytes.length !== at.end || bytes.toString('base64url') !== cursor || bytes[at.form] !== form)
        return 'malformed';
      if (bytes.readUInt32BE(at.check) !== crc32(bytes.subarray(0, at.check))) return 'malformed';
      const stream = numbered[bytes[at.stream] ?? numbered.length];
      if (stream === undefined) return 'malformed';
      if (!bytes.subarray(at.store, at.stream).equals(store)) return 'foreign';
      return {
        stream,
        revision: bytes.readUIntBE(at.revision, at.position - at.revision),
        position: (bytes[at.position] ?? 0) * 2 ** 48 + bytes.readUIntBE(at.position + 1, 6),
        event: bytes.toString('hex', at.event, at.check),
      };
    },
  };
}

/** As much of an event's id as a cursor holds. */
export const shortId = (id: string): string => id.replaceAll('-', '').slice(0, 2 * idBytes);
