/** Counts the bytes of a socket whose data somebody else reads and writes. */
import type { Socket } from 'node:net';

/**
 * @param received called with the bytes read since the last time
 * @param sent called with the bytes written since the last time
 * @returns counts now; to be called after bytes were moved, and once when the socket is closed
 */
export function followBytes(
  socket: Socket,
  received: (bytes: number) => void,
  sent: (bytes: number) => void,
): () => void {
  let read = 0;
  let written = 0;
  return () => {
    const now = { read: socket.bytesRead, written: socket.bytesWritten };
    if (now.read > read) received(now.read - read);
    if (now.written > written) sent(now.written - written);
    read = Math.max(read, now.read);
    written = Math.max(written, now.written);
  };
}
