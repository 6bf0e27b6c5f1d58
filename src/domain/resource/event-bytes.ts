/** How large events may become in the log, whoever writes them: a command is bounded before its metadata is known. */
import type { AnyEvent } from './lifecycle.js';

/** The most bytes of an event's metadata: actor, token, idempotency key. */
const metadataBytes = 768;

/** The most bytes of events in the log. */
export const mostBytesOf = (events: readonly AnyEvent[]): number =>
  events.reduce((sum, event) => sum + Buffer.byteLength(JSON.stringify(event)) + metadataBytes, 0);
