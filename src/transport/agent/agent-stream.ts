/**
 * The Control stream as a session sees it, without gRPC: `grpc-server.ts` creates these. Types only.
 */
import type { GrpcStatusCode } from '../../kernel/errors.js';
import type { AgentConnection } from '../listener/connection.js';

export interface StreamStatus {
  readonly code: GrpcStatusCode;
  /** For people: an agent never acts on it. */
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
  /** Says what the call turned out to be; a faulty one counts against its connection and its address. */
  judge(verdict: 'sound' | 'faulty'): void;
  /** Starts delivering messages. Called once. */
  start(handlers: StreamHandlers): void;
  /**
   * Sends one message and calls `done` when the peer's window has taken it. It is late for a peer that does not read,
   * and is never called on a stream that has ended.
   */
  send(bytes: Uint8Array, done: () => void): void;
  /** Stops or resumes delivering messages. Flow control holds the peer back while they are stopped. */
  pause(paused: boolean): void;
  /** Ends the stream once everything queued has been sent. Nothing may be sent afterwards. */
  close(status: StreamStatus): void;
  /** Closes the socket of the connection, and with it every stream on it. */
  kill(): void;
}
