/**
 * One side of a relayed connection: the stream with its payload, which may be inside TLS, and how to cut it so that the
 * peer does not take it for a regular end.
 */
import type { Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';

export interface Side {
  readonly stream: Socket;
  /** Closes the connection with a TCP reset. */
  reset(): void;
}

export function plainSide(socket: Socket): Side {
  return { stream: socket, reset: () => reset(socket) };
}

/** @param socket the connection below TLS */
export function tlsSide(stream: TLSSocket, socket: Socket): Side {
  return {
    stream,
    reset() {
      // In this order: destroying the stream alone would close the connection below it in the regular way.
      reset(socket);
      stream.destroy();
    },
  };
}

/** Closes a connection with a TCP reset. */
export function reset(socket: Socket): void {
  if (!socket.destroyed) socket.resetAndDestroy();
}
