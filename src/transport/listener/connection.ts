/**
 * A TCP connection that the service owns: the client's address, the stream that is handed over, whether it carries a
 * session, and the forced close. Not the protocol spoken on it. With REALITY the stream will be the one inside the TLS
 * session; address and forced close remain those of the socket.
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
  /** The connection carries one more session, pending ones included: it is not idle, and no newcomer takes its place. */
  sessionOpened(): void;
  /** It carries one session less. */
  sessionEnded(): void;
  /** Calls back once, when the socket has closed; at once if it already has. */
  onClose(listener: () => void): void;
  /** Closes the socket at once; data that is not sent yet is lost. */
  destroy(): void;
}

/** What the listener does when a connection gains or loses a session. */
interface SessionMarks {
  sessionOpened(): void;
  sessionEnded(): void;
}

export function ownConnection(id: number, socket: Socket, remoteAddress: string, marks: SessionMarks): OwnedConnection {
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
    sessionOpened: marks.sessionOpened,
    sessionEnded: marks.sessionEnded,
    onClose(listener) {
      if (closed) listener();
      else listeners.push(listener);
    },
    destroy() {
      socket.destroy();
    },
  };
}
