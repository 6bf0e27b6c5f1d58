/**
 * Joins two TCP sockets into one connection: bytes both ways, with backpressure. A half-close is passed on as such, a
 * failure as a reset, so that neither side takes a failure for a regular end.
 */
import type { Socket } from 'node:net';
import { tuning } from './tuning.js';

interface SpliceCounts {
  /** Bytes from `client` to `upstream`. */
  up(bytes: number): void;
  /** Bytes from `upstream` to `client`. */
  down(bytes: number): void;
}

/**
 * Joins two connected sockets that allow half-open connections.
 * @returns true if both directions ended regularly
 */
export function splice(client: Socket, upstream: Socket, counts: SpliceCounts): Promise<boolean> {
  return new Promise((resolve) => {
    let open = 2;
    let failed = false;
    let halfClosed = false;

    const pump = (from: Socket, to: Socket, count: (bytes: number) => void): void => {
      from.on('data', (chunk: Buffer) => {
        count(chunk.length);
        if (!to.write(chunk)) from.pause();
      });
      to.on('drain', () => from.resume());
      from.on('end', () => {
        to.end();
        if (halfClosed) return;
        halfClosed = true;
        // One side has finished and the other may never do so: end the connection when it is silent for too long.
        for (const socket of [from, to]) {
          socket.setTimeout(tuning.tcpHalfClosedIdleMs, () => reset(socket));
        }
      });
      from.on('error', () => {
        failed = true;
        reset(to);
      });
      from.on('close', () => {
        if (!from.readableEnded || !from.writableFinished) failed = true;
        if (failed) reset(to);
        open -= 1;
        if (open === 0) resolve(!failed);
      });
    };

    // A socket that was lost before the listeners are attached would emit no more events.
    if (client.destroyed || upstream.destroyed) {
      reset(client);
      reset(upstream);
      return resolve(false);
    }
    pump(client, upstream, counts.up);
    pump(upstream, client, counts.down);
    client.resume();
    upstream.resume();
  });
}

/** Closes a connection with a TCP reset. */
export function reset(socket: Socket): void {
  if (!socket.destroyed) socket.resetAndDestroy();
}
