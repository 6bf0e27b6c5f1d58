/**
 * A TCP connection that the service owns: the peer's address, the stream that is handed over, and the forced close. Not
 * the protocol spoken on it. With REALITY the stream will be the one inside the TLS session; address and forced close
 * remain those of the socket.
 */
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';

export interface OwnedConnection {
  /** Counts from 1 within the process. */
  readonly id: number;
  /** Of the client: as its balancer names it, or as the operating system reports the peer; empty if it does not. */
  readonly remoteAddress: string;
  /** Carries HTTP/2. */
  readonly stream: Duplex;
  readonly closed: boolean;
  /** Calls back once, when the socket has closed; at once if it already has. */
  onClose(listener: () => void): void;
  /** Closes the socket at once; data that is not sent yet is lost. */
  destroy(): void;
}

export function ownConnection(id: number, socket: Socket, remoteAddress: string): OwnedConnection {
  const listeners: (() => void)[] = [];
  let closed = socket.destroyed;
  socket.once('close', () => {
    closed = true;
    for (const listener of listeners.splice(0)) listener();
  });
  return {
    id,
    remoteAddress,
    stream: socket,
    get closed() {
      return closed;
    },
    onClose(listener) {
      if (closed) listener();
      else listeners.push(listener);
    },
    destroy() {
      socket.destroy();
    },
  };
}
