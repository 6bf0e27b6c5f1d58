/**
 * The Control stream as a session sees it, whatever carries it. Not gRPC: `grpc-server.ts` makes these. Types only.
 * Implements `docs/architecture.md`: `AgentStream {send(bytes, done), pause, close(status), kill, connection}`.
 */
import type { Duplex } from 'node:stream';
import type { GrpcStatusCode } from '../../kernel/errors.js';

/** What the transport needs of a connection that the listener owns; `OwnedConnection` of the listener fits. */
export interface AgentConnection {
  readonly id: number;
  /** Of the peer; empty when the kernel did not tell. */
  readonly remoteAddress: string;
  readonly stream: Duplex;
  readonly closed: boolean;
  /** Calls back once, when the socket has closed; at once when it has. */
  onClose(listener: () => void): void;
  /** Cuts the socket at once. */
  destroy(): void;
}

export interface StreamStatus {
  readonly code: GrpcStatusCode;
  /** For people; never believed by an agent. */
  readonly details: string;
}

export interface StreamHandlers {
  /** One gRPC message. */
  message(bytes: Uint8Array): void;
  /** The peer will send nothing more. */
  halfClosed(): void;
  /** The stream is over, its status sent or the peer gone. Called once, last. */
  gone(): void;
}

export interface AgentStream {
  readonly connection: AgentConnection;
  /** Begins to deliver. Called once. */
  start(handlers: StreamHandlers): void;
  /**
   * Sends one message. `done` follows the peer's window: a peer that does not read makes it late, and it never comes on
   * a stream that has ended.
   */
  send(bytes: Uint8Array, done: () => void): void;
  /** Stops delivering messages, or goes on; the peer is held back by its window meanwhile. */
  pause(paused: boolean): void;
  /** Ends the stream once what was sent is out. Nothing may be sent afterwards. */
  close(status: StreamStatus): void;
  /** Destroys the socket of the connection, and with it every stream on it. */
  kill(): void;
}
