/**
 * The gRPC server of the agent protocol: limits, the two RPCs of SecureAgentService, and AgentService, which is not
 * served. Handles bytes and statuses, and knows nothing about sessions. All connections share one injector, because an
 * injector per connection leaks. Messages are passed on as bytes, so that the service itself chooses the status for one
 * that does not parse. Implements `docs/contract/wire.md#services` and the gRPC statuses of
 * `docs/contract/agent-protocol.md#control`.
 */
import { Metadata, Server, ServerCredentials } from '@grpc/grpc-js';
import type { Http2Session, ServerHttp2Stream } from 'node:http2';
import type { Readable } from 'node:stream';
import type { ServerDuplexStream, ServerUnaryCall, handleBidiStreamingCall, handleUnaryCall } from '@grpc/grpc-js';
import { AgentServiceService } from '../../gen/svc/control/v1/agent_service.js';
import { SecureAgentServiceService } from '../../gen/svc/control/v1/secure_agent_service.js';
import { GrpcStatus, errorText } from '../../kernel/errors.js';
import { limits } from '../../kernel/limits.js';
import type { Logger } from '../../kernel/logger.js';
import type { AgentStream, StreamHandlers, StreamStatus } from './agent-stream.js';
import type { AgentConnection } from '../listener/connection.js';
import {
  boundHeaders,
  connectionOf,
  guardRefusals,
  http2StreamOf,
  markConnection,
  takeReading,
  watchServer,
  MessageReader,
  framedMessage,
} from './grpc-internals.js';
import { GuardedStream } from './guarded-stream.js';
import type { TakeBytes } from './guarded-stream.js';
import { callStarted, watchUnproven } from './unproven.js';
import type { Unproven } from './unproven.js';

/** Interval of HTTP/2 pings to agents, and how long their answer may take. */
const keepaliveMs = 60_000;
const keepaliveTimeoutMs = 20_000;
const connectionMemoryMiB = 10;
/** How long after its last answer a connection ended for faulty calls is closed. */
const endedConnectionMs = 100;

export type OpenAnswer =
  | { readonly ok: true; readonly response: Uint8Array }
  | { readonly ok: false; readonly status: StreamStatus; readonly trailers?: { readonly [name: string]: string } };

/** An OpenSession call, without its request. */
export interface OpenCall {
  readonly connection: AgentConnection;
  /** True once nobody waits for the answer. */
  cancelled(): boolean;
  /** Classifies the call; a call that is never classified is `unknown`. */
  judge(verdict: CallVerdict): void;
}

/** Handlers recognise a faulty call, one that makes no sense to this service. */
export type CallVerdict = 'sound' | 'faulty';

interface GrpcHandlers {
  /** Answers OpenSession; never rejects. */
  openSession(request: Uint8Array, call: OpenCall): Promise<OpenAnswer>;
  control(stream: AgentStream): void;
  /**
   * A call that was not sound is over. `unknown`: no handler could classify it, because of its path, content type or
   * framing, or because its peer gave up first.
   * @returns whether the connection must be ended
   */
  unsound(connection: AgentConnection, verdict: 'faulty' | 'unknown'): boolean;
  takeBytes: TakeBytes;
}

interface GrpcServer {
  /** Serves HTTP/2 on a connection from now on. */
  accept(connection: AgentConnection): void;
  /** Closes each connection once its calls have ended; calls still open after `graceMs` are ended. */
  drain(graceMs: number): void;
  /** Closes every connection at once. */
  close(): void;
}

const serverOptions = {
  'grpc.max_concurrent_streams': limits.agent.streamsPerConnection,
  'grpc.max_receive_message_length': limits.agent.grpcMessageBytes,
  'grpc.max_send_message_length': limits.agent.grpcMessageBytes,
  'grpc.keepalive_time_ms': keepaliveMs,
  'grpc.keepalive_timeout_ms': keepaliveTimeoutMs,
  // In megabytes, as node:http2 counts it.
  'grpc-node.max_session_memory': connectionMemoryMiB,
  'grpc.enable_channelz': 0,
};

const asBytes = (bytes: Buffer): Buffer => bytes;
const asBuffer = (bytes: Uint8Array): Buffer => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);

/** @throws Error if the installed gRPC library is not the version that this file was written for */
export function createGrpcServer(handlers: GrpcHandlers, logger: Logger): GrpcServer {
  const server = new Server(serverOptions);
  guardRefusals(server);
  const verdicts = new WeakMap<ServerHttp2Stream, CallVerdict>();
  const judge: Judge = (call, verdict) => {
    const stream = http2StreamOf(call);
    if (stream !== undefined) verdicts.set(stream, verdict);
  };
  boundHeaders(server);
  const unproven = new WeakMap<AgentConnection, Unproven>();
  watchServer(server, {
    started(connection, session) {
      const watched = unproven.get(connection);
      if (watched !== undefined) watched.session = session;
    },
    called(connection, stream) {
      const watched = unproven.get(connection);
      if (watched !== undefined) callStarted(watched, stream);
    },
    closed(connection, stream) {
      const verdict = verdicts.get(stream) ?? 'unknown';
      const watched = unproven.get(connection);
      watched?.stream.pardon();
      if (verdict === 'sound' || !handlers.unsound(connection, verdict)) return;
      endConnection(connection, watched?.session);
    },
  });
  server.register(
    SecureAgentServiceService.openSession.path,
    openSessionHandler(handlers, judge, logger),
    asBytes,
    asBytes,
    'unary',
  );
  server.register(SecureAgentServiceService.control.path, controlHandler(handlers, judge), asBytes, asBytes, 'bidi');
  // Without an implementation, grpc-js answers UNIMPLEMENTED.
  server.addService(AgentServiceService, {});
  const injector = server.createConnectionInjector(ServerCredentials.createInsecure());
  return {
    accept(connection) {
      const stream = new GuardedStream(connection, handlers.takeBytes);
      markConnection(connection, stream);
      unproven.set(connection, watchUnproven(connection, stream));
      injector.injectConnection(stream);
    },
    drain: (graceMs) => injector.drain(graceMs),
    close() {
      injector.destroy();
      server.forceShutdown();
    },
  };
}

type Judge = (call: object, verdict: CallVerdict) => void;

function openSessionHandler(handlers: GrpcHandlers, judge: Judge, logger: Logger): handleUnaryCall<Buffer, Buffer> {
  const gone: OpenAnswer = { ok: false, status: { code: GrpcStatus.UNAVAILABLE, details: 'connection closed' } };
  const failed: OpenAnswer = { ok: false, status: { code: GrpcStatus.INTERNAL, details: 'internal error' } };
  const answer = async (call: ServerUnaryCall<Buffer, Buffer>): Promise<OpenAnswer> => {
    const connection = connectionOf(call);
    if (connection === undefined) return gone;
    try {
      return await handlers.openSession(call.request, {
        connection,
        cancelled: () => call.cancelled || connection.closed,
        judge: (verdict) => judge(call, verdict),
      });
    } catch (error) {
      logger.error({ error: errorText(error) }, 'OpenSession failed');
      return failed;
    }
  };
  return async (call, callback) => {
    const result = await answer(call);
    if (result.ok) {
      callback(null, asBuffer(result.response));
      return;
    }
    const metadata = new Metadata();
    for (const [name, value] of Object.entries(result.trailers ?? {})) metadata.set(name, value);
    callback({ ...result.status, metadata });
  };
}

function controlHandler(handlers: GrpcHandlers, judge: Judge): handleBidiStreamingCall<Buffer, Buffer> {
  return (call) => {
    const connection = connectionOf(call);
    if (connection === undefined) {
      call.end();
      return;
    }
    handlers.control(new ControlStream(call, connection, judge));
  };
}

/** A class, because each agent has one: see `src/channel/noise/cipher-state.ts`. */
class ControlStream implements AgentStream {
  readonly #call: ServerDuplexStream<Buffer, Buffer>;
  readonly #judge: Judge;
  readonly #http2: ServerHttp2Stream | undefined;
  /** Undefined if the library decodes. */
  #reader: MessageReader | undefined;
  #handlers: StreamHandlers | undefined;
  #headersSent = false;
  #paused = false;
  #closing = false;
  #over = false;
  readonly connection: AgentConnection;

  constructor(call: ServerDuplexStream<Buffer, Buffer>, connection: AgentConnection, judge: Judge) {
    this.#call = call;
    this.#judge = judge;
    this.#http2 = http2StreamOf(call);
    this.connection = connection;
  }

  judge(verdict: CallVerdict): void {
    this.#judge(this.#call, verdict);
  }
  start(handlers: StreamHandlers): void {
    const call = this.#call;
    this.#handlers = handlers;
    if (takeReading(call, (piece) => this.#take(piece))) {
      this.#reader = new MessageReader();
      this.#http2?.on('end', () => this.#ended());
      this.#http2?.resume();
    } else {
      call.on('data', (bytes: Buffer) => {
        if (!this.#over) handlers.message(bytes);
      });
      call.on('end', () => this.#ended());
    }
    // The library emits this for every end, including a status sent by the service.
    call.once('cancelled', () => {
      this.#over = true;
      closeLater(call);
      handlers.gone();
    });
  }
  send(bytes: Uint8Array, done: () => void): void {
    if (this.#over || this.#closing || this.#http2 === undefined) return;
    if (!this.#headersSent) this.#call.sendMetadata(new Metadata());
    this.#headersSent = true;
    // Bypasses the library's own stream, whose queue is always empty here: it would copy each message once more, and
    // call back two turns later. The status still follows what is written, because the same HTTP/2 stream sends it.
    this.#http2.write(framedMessage(bytes), (error?: Error | null) => {
      if (!this.#over && (error === undefined || error === null)) done();
    });
  }
  pause(paused: boolean): void {
    if (this.#over) return;
    this.#paused = paused;
    if (paused) this.#reading.pause();
    // Deferred, because the caller is busy: messages of the last piece may wait here.
    else queueMicrotask(() => this.#readOn());
  }
  close(status: StreamStatus): void {
    if (this.#over || this.#closing) return;
    this.#closing = true;
    // Keeps reading, so that what the peer still sends is discarded and its end is noticed.
    this.#reading.resume();
    if (status.code === GrpcStatus.OK) this.#call.end();
    else this.#call.emit('error', { code: status.code, details: status.details, metadata: new Metadata() });
  }
  kill(): void {
    this.connection.destroy();
  }

  get #reading(): Pick<Readable, 'pause' | 'resume'> {
    return this.#reader === undefined || this.#http2 === undefined ? this.#call : this.#http2;
  }
  #take(piece: Buffer): void {
    if (this.#over || this.#closing) return;
    this.#reader?.add(piece);
    this.#deliver();
  }
  #deliver(): void {
    while (!this.#over && !this.#closing && !this.#paused) {
      const message = this.#reader?.next();
      if (message === undefined) return;
      if (message === 'too_large') return this.close(tooLarge);
      this.#handlers?.message(message);
    }
  }
  #readOn(): void {
    this.#deliver();
    if (!this.#over && !this.#paused) this.#reading.resume();
  }
  #ended(): void {
    if (!this.#over) this.#handlers?.halfClosed();
  }
}

const tooLarge: StreamStatus = {
  code: GrpcStatus.RESOURCE_EXHAUSTED,
  details: `a message is larger than ${limits.agent.grpcMessageBytes} bytes`,
};

/** From now on, HTTP/2 ignores new calls; the last answer gets a moment to leave before the socket is closed. */
function endConnection(connection: AgentConnection, session: Http2Session | undefined): void {
  session?.close();
  const timer = setTimeout(() => connection.destroy(), endedConnectionMs);
  timer.unref();
  connection.onClose(() => clearTimeout(timer));
}

/** A peer that keeps its half of an ended stream open would occupy one of the connection's few streams. */
function closeLater(call: object): void {
  const stream = http2StreamOf(call);
  if (stream === undefined || stream.closed || stream.destroyed) return;
  const timer = setTimeout(() => stream.close(), limits.agent.closeGraceMs);
  timer.unref();
  stream.once('close', () => clearTimeout(timer));
}
