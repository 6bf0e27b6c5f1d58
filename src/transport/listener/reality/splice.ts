/**
 * Joins two sockets, so that each side meets the other: bytes, the end of one direction, a reset. Backpressure passes
 * through. The caller destroys both sockets afterwards; the listener enforces limits of bytes and time.
 */
import type { Socket } from 'node:net';

/** Closes a connection with a TCP reset. While its end is being sent, Node cannot reset it, and would never close it. */
export function reset(socket: Socket): void {
  if (socket.writableEnded && !socket.writableFinished && socket.writableLength === 0) socket.destroy();
  else if (!socket.destroyed) socket.resetAndDestroy();
}

/**
 * @param client paused and created with `allowHalfOpen`, like `target`. The first bytes for the target were written
 *   before.
 * @returns when nothing is left to pass on: the client's connection is closed, or the target's failed
 */
export function splice(client: Socket, target: Socket): Promise<void> {
  return new Promise((resolve) => {
    const pass = (from: Socket, to: Socket): void => {
      const fail = (error: Error): void => {
        if ('code' in error && error.code === 'ECONNRESET') reset(to);
        resolve();
      };
      if (from.errored !== null) return fail(from.errored);
      if (from.destroyed) return resolve();
      from.on('error', fail);
      from.once('close', () => {
        // After an orderly end, the target's last bytes may be on their way to the client, who then closes by itself.
        if (from === client || !from.readableEnded || !from.writableFinished) resolve();
      });
      from.pipe(to);
    };
    pass(client, target);
    pass(target, client);
  });
}
