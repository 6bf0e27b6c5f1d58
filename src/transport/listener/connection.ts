/**
 * A TCP connection that the service owns: its address, the stream that is handed over, and the hard cut. Not what is
 * spoken on it. With REALITY the stream will be one inside the socket; address and cut stay the socket's.
 */
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';

export interface OwnedConnection {
  /** Counts from 1 within the process. */
  readonly id: number;
  /** Of the peer, as the kernel tells it. */
  readonly remoteAddress: string;
  /** What HTTP/2 is spoken on. */
  readonly stream: Duplex;
  readonly closed: boolean;
  /** Calls back once, when the socket has closed; at once when it has. */
  onClose(listener: () => void): void;
  /** Cuts the socket at once; what the kernel has not taken is lost. */
  destroy(): void;
}

export function ownConnection(id: number, socket: Socket): OwnedConnection {
  const listeners: (() => void)[] = [];
  let closed = socket.destroyed;
  socket.once('close', () => {
    closed = true;
    for (const listener of listeners.splice(0)) listener();
  });
  return {
    id,
    remoteAddress: socket.remoteAddress ?? '',
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
