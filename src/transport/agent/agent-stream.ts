/**
 * The Control stream as a session sees it, without gRPC: `grpc-server.ts` creates these. Types only.
 */
import type { Duplex } from 'node:stream';
import type { GrpcStatusCode } from '../../kernel/errors.js';

/** What the transport needs of a connection that the listener owns; `OwnedConnection` of the listener fits. */
export interface AgentConnection {
  readonly id: number;
  /** Of the client, also behind a balancer; empty when the operating system does not report it. */
  readonly remoteAddress: string;
  readonly stream: Duplex;
  readonly closed: boolean;
  /** The connection carries one more session, pending ones included: it is not idle, and no newcomer takes its place. */
  sessionOpened(): void;
  /** It carries one session less. */
  sessionEnded(): void;
  readonly hasSession: boolean;
  /** Bytes received since it came, or since `answered`. */
  readonly unansweredBytes: number;
  /** Nothing received so far is waiting for an answer. */
  answered(): void;
  /** While it has no session it is asked five times a second whether it costs too much, and if so closed. */
  watch(isCostly: (() => boolean) | undefined): void;
  /** Calls back once, when the socket has closed; at once if it already has. */
  onClose(listener: () => void): void;
  /** Closes the socket at once. */
  destroy(): void;
}

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
