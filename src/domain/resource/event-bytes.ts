/** How large events may become in the log, whoever writes them: a command is bounded before its metadata is known. */
import type { AnyEvent } from './lifecycle.js';

/** The maximum size of an event's metadata, in bytes: actor, token, idempotency key. */
const metadataBytes = 768;

/** An upper bound of the size of events in the log, in bytes. */
export const mostBytesOf = (events: readonly AnyEvent[]): number =>
  events.reduce((sum, event) => sum + Buffer.byteLength(JSON.stringify(event)) + metadataBytes, 0);
