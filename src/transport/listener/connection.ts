/**
 * A TCP connection that the service owns: the client's address, the stream that is handed over, whether it carries a
 * session, the bytes that are still unanswered, and the forced close. It knows nothing of the protocol spoken on it.
 * With REALITY, the stream is the one inside the TLS connection; address and forced close remain the socket's.
 */
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { Entry } from './connection-table.js';

/** A connection as the listener hands it over: to the agents' transport, or to an agent's own listener. */
export interface AgentConnection {
  /** Counts from 1 within the process. */
  readonly id: number;
  /** The client's address: from its balancer, or the peer address from the operating system; empty if unknown. */
  readonly remoteAddress: string;
  /** Carries HTTP/2. */
  readonly stream: Duplex;
  readonly closed: boolean;
  /** The connection carries one more session, pending ones included: it is not idle, and no newcomer replaces it. */
  sessionOpened(): void;
  /** The connection carries one session less. */
  sessionEnded(): void;
  readonly hasSession: boolean;
  /** Bytes received that `answered` has not accounted for. */
  readonly unansweredBytes: number;
  /** This many of the bytes received so far, or all of them, are accounted for. */
  answered(bytes?: number): void;
  /** While it has no session, `isCostly` decides five times a second whether to close it. */
  watch(isCostly: (() => boolean) | undefined): void;
  /** Closes the connection, which has no session, at once, and counts and logs it as too costly. */
  endCostly(): void;
  /** Calls back once when the socket has closed; at once if it already has. */
  onClose(listener: () => void): void;
  /** Closes the socket at once; unsent data is lost. */
  destroy(): void;
}

/** Events of a connection, for the listener that keeps the table. */
export interface SessionMarks {
  opened(connection: Connection): void;
  ended(connection: Connection): void;
  costly(connection: Connection): void;
}

/**
 * A connection as the listener keeps it from the first byte. A class, because there are twenty thousand of them, and an
 * object of functions would take 2 KiB more each.
 */
export class Connection implements AgentConnection {
  readonly id: number;
  readonly socket: Socket;
  /** The socket, until REALITY replaces it with the stream inside. */
  stream: Duplex;
  /** The address of the socket's peer, until a balancer has named the client. */
  remoteAddress: string;
  closed = false;
  isCostly: (() => boolean) | undefined;
  /** Ends the wait for its first bytes, where silent connections may be mirrored. */
  giveUpSniffing: (() => void) | undefined;
  /** Its place in the listener's table. */
  entry: Entry<Connection> | undefined;
  #answeredBytes = 0;
  #closeListeners: (() => void)[] | undefined;
  readonly #marks: SessionMarks;

  constructor(id: number, socket: Socket, peer: string, marks: SessionMarks) {
    this.id = id;
    this.socket = socket;
    this.stream = socket;
    this.remoteAddress = peer;
    this.#marks = marks;
  }

  sessionOpened(): void {
    this.#marks.opened(this);
  }
  sessionEnded(): void {
    this.#marks.ended(this);
  }
  get hasSession(): boolean {
    return this.entry !== undefined && this.entry.sessions > 0;
  }
  get unansweredBytes(): number {
    return this.socket.bytesRead - this.#answeredBytes;
  }
  answered(bytes = Number.POSITIVE_INFINITY): void {
    this.#answeredBytes = Math.min(this.socket.bytesRead, this.#answeredBytes + bytes);
  }
  watch(isCostly: (() => boolean) | undefined): void {
    this.isCostly = isCostly;
  }
  endCostly(): void {
    this.#marks.costly(this);
  }
  onClose(listener: () => void): void {
    if (this.closed) listener();
    else (this.#closeListeners ??= []).push(listener);
  }
  destroy(): void {
    this.socket.destroy();
  }
  /** The socket has closed. */
  noteClosed(): void {
    this.closed = true;
    for (const listener of this.#closeListeners?.splice(0) ?? []) listener();
  }
}
