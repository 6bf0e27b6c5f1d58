/** The limits of a connection joined to the target, in bytes and silence. Its owner checks them and closes it. */
import type { Socket } from 'node:net';
import type { Clock } from '../../../kernel/clock.js';
import { tuning } from './tuning.js';

/**
 * Whether a mirrored connection has used up its bytes, or has been silent for long while there are many or its client
 * leaves data unread, which holds memory. Called repeatedly.
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
