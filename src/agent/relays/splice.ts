/**
 * Joins two connections into one: bytes both ways, with backpressure. A half-close is passed on as such and a failure
 * as a reset, so that neither side mistakes a failure for a regular end.
 */
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { TLSSocket } from 'node:tls';
import { reset } from '../../transport/listener/reality/splice.js';

/** How long a half-closed connection may be silent before it is closed. */
const halfClosedIdleMs = 10 * 60_000;

export interface Side {
  readonly stream: Duplex;
  /** The connection whose bytes are counted and whose silence is noticed. */
  readonly socket: Socket;
  /** Closes the connection with a TCP reset. */
  reset(): void;
  /** Whether an end that was read is that of a lost connection: Node reports a reset right behind data as an end. */
  isLost(): boolean;
}

export function plainSide(socket: Socket): Side {
  // A connection that was reset has no peer any more; nor has one that has ended both ways.
  const isLost = (): boolean => !socket.writableEnded && socket.remoteAddress === undefined;
  return { stream: socket, socket, reset: () => reset(socket), isLost };
}

/** @param socket the connection underneath TLS */
export function tlsSide(stream: TLSSocket, socket: Socket): Side {
  return { ...innerSide(stream, socket), socket: stream };
}

/** @param socket the connection underneath the stream, whose bytes go through JavaScript */
export function innerSide(stream: Duplex, socket: Socket): Side {
  return {
    stream,
    socket,
    reset() {
      // The socket first: destroying the stream alone would close the underlying connection in the regular way.
      reset(socket);
      stream.destroy();
    },
    // What is inside says its end itself.
    isLost: () => false,
  };
}

export interface SpliceCounts {
  /** Bytes from `client` to `upstream`. */
  up(bytes: number): void;
  /** Bytes from `upstream` to `client`. */
  down(bytes: number): void;
}

/**
 * Joins two connected sides that allow half-open connections.
 * @param ended what the client had sent, if it has already ended its direction
 * @returns true if both directions ended regularly
 */
export function splice(client: Side, upstream: Side, counts: SpliceCounts, ended?: Buffer): Promise<boolean> {
  return new Promise((resolve) => {
    let open = 2;
    let failed = false;
    let halfClosed = false;

    const end = (to: Side): void => {
      to.stream.end();
      if (halfClosed) return;
      halfClosed = true;
      // One side has finished and the other may never do so: end the connection when it is silent for too long.
      for (const side of [client, upstream]) {
        side.socket.setTimeout(halfClosedIdleMs, () => side.reset());
      }
    };
    const pump = (fromSide: Side, toSide: Side, count: (bytes: number) => void): void => {
      const [from, to] = [fromSide.stream, toSide.stream];
      from.on('data', (chunk: Buffer) => {
        count(chunk.length);
        if (!to.write(chunk)) from.pause();
      });
      to.on('drain', () => from.resume());
      from.on('end', () => (fromSide.isLost() ? from.destroy(new Error('reset')) : end(toSide)));
      from.on('error', () => {
        failed = true;
        toSide.reset();
      });
      from.on('close', () => {
        if (!from.readableEnded || !from.writableFinished) failed = true;
        if (failed) toSide.reset();
        open -= 1;
        if (open === 0) resolve(!failed);
      });
    };

    // A socket that is already lost emits no more events.
    if (client.stream.destroyed || upstream.stream.destroyed) {
      client.reset();
      upstream.reset();
      return resolve(false);
    }
    pump(client, upstream, counts.up);
    pump(upstream, client, counts.down);
    if (ended !== undefined && ended.length > 0) {
      counts.up(ended.length);
      upstream.stream.write(ended);
    }
    // A paused socket without data still emits its end, perhaps before the listeners were attached.
    if (client.stream.readableEnded) end(upstream);
    if (upstream.stream.readableEnded) end(client);
    client.stream.resume();
    upstream.stream.resume();
  });
}
