/**
 * Joins two sockets, so that each side meets the other: bytes, the end of one direction, a reset. Backpressure goes through.
 * Limits of bytes and time are kept by the listener.
 */
import type { Socket } from 'node:net';

/** Both sockets are paused, and were made with `allowHalfOpen`. What is to be sent first was written before. */
export function splice(client: Socket, target: Socket): void {
  pass(client, target);
  pass(target, client);
}

function pass(from: Socket, to: Socket): void {
  const fail = (error: Error): void => {
    if ('code' in error && error.code === 'ECONNRESET') to.resetAndDestroy();
    else to.destroy();
  };
  from.on('error', fail);
  if (from.errored !== null) {
    fail(from.errored);
    return;
  }
  from.once('close', () => {
    // After an orderly end the other direction goes on; after anything else there is nobody left.
    if (!from.readableEnded) to.destroy();
  });
  from.pipe(to);
}
