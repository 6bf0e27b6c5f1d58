/**
 * Two TCP sockets as one connection: bytes both ways, backpressure, half-close passed on, a failure passed on as a
 * reset, so that neither side takes a cut for an end.
 */
import type { Socket } from 'node:net';
import { tuning } from './tuning.js';

export interface SpliceCounts {
  /** Bytes from `client` to `upstream`. */
  up(bytes: number): void;
  down(bytes: number): void;
}

/** Joins two connected sockets made with `allowHalfOpen`; resolves true when both directions came to their end. */
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
        // One side has finished and the other may never do so: silence ends it.
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

    // A socket that was lost between its connect and now would say nothing any more.
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

/** Ends a connection with a RST. */
export function reset(socket: Socket): void {
  if (!socket.destroyed) socket.resetAndDestroy();
}
