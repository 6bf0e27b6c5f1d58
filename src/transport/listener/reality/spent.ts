/** The bounds of a connection that is joined to the target, in bytes and silence. Its owner asks, and closes it. */
import type { Socket } from 'node:net';
import type { Clock } from '../../../kernel/clock.js';
import { tuning } from './tuning.js';

/**
 * Whether a mirrored connection has used up its bytes; or whether it has been silent for long although its client has not
 * taken everything, which holds memory, or there are many. Asked again and again.
 */
export function isSpent(socket: Socket, clock: Clock, many: () => boolean): () => boolean {
  let bytes = 0;
  let since = clock.monotonic();
  return () => {
    const now = clock.monotonic();
    const current = socket.bytesRead + socket.bytesWritten;
    if (current !== bytes) since = now;
    bytes = current;
    const isSilent = now - since > tuning.mirroredIdleMs;
    return bytes > tuning.mirroredBytes || (isSilent && (socket.writableLength > 0 || many()));
  };
}
