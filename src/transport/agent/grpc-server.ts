/**
 * The gRPC server of the agent protocol: limits, the two RPCs of SecureAgentService, and AgentService, which is not
 * served. Knows bytes and statuses, nothing of sessions. All connections go through one injector: one per connection
 * leaks. Messages are passed as bytes, so that one that does not parse gets the status of the contract.
 * Implements `docs/contract/agent-protocol.md` (table of ends) and the notes on grpc-js of `docs/architecture.md`.
 */
import { Metadata, Server, ServerCredentials } from '@grpc/grpc-js';
import type { ServerDuplexStream, ServerUnaryCall, handleBidiStreamingCall, handleUnaryCall } from '@grpc/grpc-js';
import { AgentServiceService } from '../../gen/svc/control/v1/agent_service.js';
import { SecureAgentServiceService } from '../../gen/svc/control/v1/secure_agent_service.js';
import { GrpcStatus, errorText } from '../../kernel/errors.js';
import { limits } from '../../kernel/limits.js';
import type { Logger } from '../../kernel/logger.js';
import type { AgentConnection, AgentStream, StreamStatus } from './agent-stream.js';
import { checkGrpcInternals, connectionOf, http2StreamOf, markConnection } from './grpc-internals.js';
import { tuning } from './tuning.js';

export type OpenAnswer =
  | { readonly ok: true; readonly response: Uint8Array }
  | { readonly ok: false; readonly status: StreamStatus; readonly trailers?: { readonly [name: string]: string } };

export interface GrpcHandlers {
  /** Answers OpenSession; never rejects. `cancelled` tells whether anybody still waits. */
  openSession(request: Uint8Array, connection: AgentConnection, cancelled: () => boolean): Promise<OpenAnswer>;
  control(stream: AgentStream): void;
}

export interface GrpcServer {
  /** Speaks HTTP/2 on a connection from now on. */
  accept(connection: AgentConnection): void;
  /** Lets each connection go once what is on its way has left; what has not by then is ended after `graceMs`. */
  drain(graceMs: number): void;
  /** Ends at once whatever is still open. */
  close(): void;
}

const serverOptions = {
  'grpc.max_concurrent_streams': limits.agent.streamsPerConnection,
  'grpc.max_receive_message_length': limits.agent.grpcMessageBytes,
  'grpc.max_send_message_length': limits.agent.grpcMessageBytes,
  'grpc.keepalive_time_ms': tuning.keepaliveMs,
  'grpc.keepalive_timeout_ms': tuning.keepaliveTimeoutMs,
  // A connection without a stream is a connection without a session.
  'grpc.max_connection_idle_ms': tuning.connectionIdleMs,
  // In megabytes, as node:http2 counts.
  'grpc-node.max_session_memory': tuning.connectionMemoryMiB,
  'grpc.enable_channelz': 0,
};

const asBytes = (bytes: Buffer): Buffer => bytes;
const asBuffer = (bytes: Uint8Array): Buffer => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);

/** @throws Error in one sentence when the installed gRPC library is not the one this was written for */
export async function createGrpcServer(handlers: GrpcHandlers, logger: Logger): Promise<GrpcServer> {
  await checkGrpcInternals();
  const server = new Server(serverOptions);
  server.register(
    SecureAgentServiceService.openSession.path,
    openSessionHandler(handlers, logger),
    asBytes,
    asBytes,
    'unary',
  );
  server.register(SecureAgentServiceService.control.path, controlHandler(handlers), asBytes, asBytes, 'bidi');
  // Without an implementation grpc-js answers UNIMPLEMENTED.
  server.addService(AgentServiceService, {});
  const injector = server.createConnectionInjector(ServerCredentials.createInsecure());
  return {
    accept(connection) {
      markConnection(connection);
      injector.injectConnection(connection.stream);
    },
    drain: (graceMs) => injector.drain(graceMs),
    close() {
      injector.destroy();
      server.forceShutdown();
    },
  };
}

function openSessionHandler(handlers: GrpcHandlers, logger: Logger): handleUnaryCall<Buffer, Buffer> {
  const gone: OpenAnswer = { ok: false, status: { code: GrpcStatus.UNAVAILABLE, details: 'connection closed' } };
  const failed: OpenAnswer = { ok: false, status: { code: GrpcStatus.INTERNAL, details: 'internal error' } };
  const answer = async (call: ServerUnaryCall<Buffer, Buffer>): Promise<OpenAnswer> => {
    const connection = connectionOf(call);
    if (connection === undefined) return gone;
    try {
      return await handlers.openSession(call.request, connection, () => call.cancelled || connection.closed);
    } catch (error) {
      logger.error({ error: errorText(error) }, 'OpenSession failed');
      return failed;
    }
  };
  return async (call, callback) => {
    const answered = await answer(call);
    if (answered.ok) {
      callback(null, asBuffer(answered.response));
      return;
    }
    const metadata = new Metadata();
    for (const [name, value] of Object.entries(answered.trailers ?? {})) metadata.set(name, value);
    callback({ ...answered.status, metadata });
  };
}

function controlHandler(handlers: GrpcHandlers): handleBidiStreamingCall<Buffer, Buffer> {
  return (call) => {
    const connection = connectionOf(call);
    if (connection === undefined) {
      call.end();
      return;
    }
    handlers.control(agentStream(call, connection));
  };
}

function agentStream(call: ServerDuplexStream<Buffer, Buffer>, connection: AgentConnection): AgentStream {
  let closing = false;
  let over = false;
  return {
    connection,
    start(stream) {
      call.on('data', (bytes: Buffer) => {
        if (!over) stream.message(bytes);
      });
      call.on('end', () => {
        if (!over) stream.halfClosed();
      });
      // The library's name for every end, a sent status included.
      call.once('cancelled', () => {
        over = true;
        closeLater(call);
        stream.gone();
      });
    },
    send(bytes, done) {
      if (over || closing) return;
      call.write(asBuffer(bytes), (error?: Error | null) => {
        if (!over && (error === undefined || error === null)) done();
      });
    },
    pause(paused) {
      if (over) return;
      if (paused) call.pause();
      else call.resume();
    },
    close(status) {
      if (over || closing) return;
      closing = true;
      // Reading goes on, so that what the peer still sends is thrown away and its end is seen.
      call.resume();
      if (status.code === GrpcStatus.OK) call.end();
      else call.emit('error', { code: status.code, details: status.details, metadata: new Metadata() });
    },
    kill() {
      connection.destroy();
    },
  };
}

/** A peer that keeps its half of an ended stream open would hold one of the few streams of its connection. */
function closeLater(call: object): void {
  const stream = http2StreamOf(call);
  if (stream === undefined || stream.closed || stream.destroyed) return;
  const timer = setTimeout(() => stream.close(), limits.agent.closeGraceMs);
  timer.unref();
  stream.once('close', () => clearTimeout(timer));
}
