/**
 * The Control stream as a session sees it, without gRPC: `grpc-call.ts` implements it. Types only.
 */
import type { GrpcStatusCode } from '../../kernel/errors.js';
import type { AgentConnection } from '../listener/connection.js';

export interface StreamStatus {
  readonly code: GrpcStatusCode;
  /** For people; an agent never acts on it. */
  readonly details: string;
}

export interface StreamHandlers {
  /** One gRPC message. */
  message(bytes: Uint8Array): void;
  /** The peer has half-closed: it sends nothing more. */
  halfClosed(): void;
  /** The stream is over: its status was sent, or the peer is gone. Called once, last. */
  gone(): void;
}

export interface AgentStream {
  readonly connection: AgentConnection;
  /** Classifies the call; a faulty one counts against its connection and address. */
  judge(verdict: 'sound' | 'faulty'): void;
  /** Starts delivering messages. Called once. */
  start(handlers: StreamHandlers): void;
  /**
   * Sends one message and calls `done` when the peer's window has taken it. `done` comes late for a peer that does not
   * read, and never on a stream that has ended.
   */
  send(bytes: Uint8Array, done: () => void): void;
  /** Stops or resumes delivering messages. While stopped, flow control holds the peer back. */
  pause(paused: boolean): void;
  /** Ends the stream once everything queued has been sent. Nothing may be sent afterwards. */
  close(status: StreamStatus): void;
  /** Closes the socket of the connection, and with it every stream on it. */
  kill(): void;
}
