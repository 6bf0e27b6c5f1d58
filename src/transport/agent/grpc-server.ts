/**
 * The gRPC server of the agent protocol on node:http2: limits, the two RPCs of SecureAgentService, and AgentService,
 * which is not served. Handles bytes and statuses, and knows nothing about sessions. It does not use grpc-js, which
 * neither exposes the connection of a call nor bounds its headers. `grpc-call.ts` is one call. Implements
 * `docs/contract/wire.md#services` and the gRPC statuses of `docs/contract/agent-protocol.md#control`.
 */
import {
  constants,
  performServerHandshake,
  type IncomingHttpHeaders,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from 'node:http2';
import { SecureAgentServiceService } from '../../gen/svc/control/v1/secure_agent_service.js';
import { GrpcStatus, errorText } from '../../kernel/errors.js';
import { limits } from '../../kernel/limits.js';
import type { Logger } from '../../kernel/logger.js';
import type { AgentStream, StreamStatus } from './agent-stream.js';
import type { AgentConnection } from '../listener/connection.js';
import { GrpcCall, respond, serveUnary } from './grpc-call.js';
import { GuardedStream, type TakeBytes } from './guarded-stream.js';
import { callStarted, watchUnproven } from './unproven.js';

/** Interval of HTTP/2 pings to agents, and how long their answer may take. */
const keepaliveMs = 60_000;
const keepaliveTimeoutMs = 20_000;
/** How long a connection that is ended for faulty calls stays open after its last answer. */
const endedConnectionMs = 100;
/** The longest header value that the service expects; longer ones count as absent. */
const valueChars = 256;
/** What a header counts in addition to its name and value (RFC 9113, section 6.5.2). */
const bytesPerHeader = 32;

const sessionOptions = {
  // In megabytes.
  maxSessionMemory: 10,
  // Agents send about ten.
  maxHeaderListPairs: 64,
  settings: {
    maxConcurrentStreams: limits.agent.streamsPerConnection,
    maxHeaderListSize: limits.agent.headerListBytes,
  },
};

export type OpenAnswer =
  | { readonly ok: true; readonly response: Uint8Array }
  | { readonly ok: false; readonly status: StreamStatus; readonly trailers?: { readonly [name: string]: string } };

/** An OpenSession call, without its request. */
export interface OpenCall {
  readonly connection: AgentConnection;
  /** True once nobody waits for the answer. */
  cancelled(): boolean;
  /** Classifies the call; a call that is never classified is `unknown`. */
  judge(verdict: 'sound' | 'faulty'): void;
}

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

export function createGrpcServer(handlers: GrpcHandlers, logger: Logger) {
  const sessions = new Set<ServerHttp2Session>();
  const destroyAll = (): void => {
    for (const session of sessions) session.destroy();
  };
  const serve = createMethods(handlers, logger);
  return {
    /** Serves HTTP/2 on a connection from now on. */
    accept(connection: AgentConnection): void {
      const stream = new GuardedStream(connection, handlers.takeBytes);
      const unproven = watchUnproven(connection, stream);
      const session = performServerHandshake(stream, sessionOptions);
      unproven.session = session;
      sessions.add(session);
      const keepalive = setInterval(() => ping(session), keepaliveMs).unref();
      // An error closes the session, and with it the connection.
      session.on('error', () => undefined);
      session.on('close', () => {
        clearInterval(keepalive);
        sessions.delete(session);
      });
      const onCall = (
        http2: ServerHttp2Stream,
        headers: IncomingHttpHeaders,
        _flags: number,
        rawHeaders: readonly string[],
      ): void => {
        const call = new GrpcCall(http2, connection, textOf(headers, 'grpc-encoding') ?? 'identity');
        http2.on('error', () => undefined);
        http2.once('close', () => {
          stream.pardon();
          const { verdict } = call;
          if (verdict !== 'sound' && handlers.unsound(connection, verdict)) endConnection(connection, session);
        });
        if (http2.destroyed || http2.closed) return;
        // HTTP/2 enforces the bound only on a peer that has confirmed it.
        if (headerListBytes(rawHeaders) > limits.agent.headerListBytes) {
          return http2.close(constants.NGHTTP2_ENHANCE_YOUR_CALM);
        }
        serve(call, http2, headers);
        callStarted(unproven, http2);
      };
      session.on('stream', onCall);
    },
    /** Closes each connection once its calls have ended; calls still open after `graceMs` are ended. */
    drain(graceMs: number): void {
      for (const session of sessions) session.close();
      setTimeout(destroyAll, graceMs).unref();
    },
    /** Closes every connection at once. */
    close: destroyAll,
  };
}

/** @returns a function that starts to serve a call by its method */
function createMethods(
  handlers: GrpcHandlers,
  logger: Logger,
): (call: GrpcCall, http2: ServerHttp2Stream, headers: IncomingHttpHeaders) => void {
  const openSession = (call: GrpcCall): void =>
    serveUnary(call, async (request) => {
      try {
        const answer = await handlers.openSession(request, {
          connection: call.connection,
          cancelled: () => call.over,
          judge: (verdict) => call.judge(verdict),
        });
        if (answer.ok) respond(call, answer.response);
        else call.close(answer.status, answer.trailers);
      } catch (error) {
        logger.error({ error: errorText(error) }, 'OpenSession failed');
        call.close({ code: GrpcStatus.INTERNAL, details: 'internal error' });
      }
    });
  const methods = new Map<string | undefined, (call: GrpcCall) => void>([
    [SecureAgentServiceService.openSession.path, openSession],
    [SecureAgentServiceService.control.path, (call) => handlers.control(call)],
  ]);
  return (call, http2, headers) => {
    if (textOf(headers, 'content-type')?.startsWith('application/grpc') !== true) {
      return http2.respond({ ':status': 415 }, { endStream: true });
    }
    const method = methods.get(textOf(headers, ':path'));
    if (method === undefined) call.close({ code: GrpcStatus.UNIMPLEMENTED, details: 'this method is not served' });
    else method(call);
  };
}

function textOf(headers: IncomingHttpHeaders, name: string): string | undefined {
  const value = headers[name];
  return typeof value === 'string' && value.length <= valueChars ? value : undefined;
}

/** Size as RFC 9113 counts it, in bytes. @param list alternating names and values */
function headerListBytes(list: readonly string[]): number {
  let bytes = (list.length / 2) * bytesPerHeader;
  for (const text of list) bytes += text.length;
  return bytes;
}

/** Ends a session whose peer is gone. */
function ping(session: ServerHttp2Session): void {
  const late = setTimeout(() => session.destroy(), keepaliveTimeoutMs).unref();
  const isSent = !session.destroyed && session.ping(() => clearTimeout(late));
  if (!isSent) clearTimeout(late);
}

/** From now on, HTTP/2 ignores new calls; the last answer gets a moment to leave before the socket is closed. */
function endConnection(connection: AgentConnection, session: ServerHttp2Session): void {
  session.close();
  const timer = setTimeout(() => connection.destroy(), endedConnectionMs).unref();
  connection.onClose(() => clearTimeout(timer));
}
