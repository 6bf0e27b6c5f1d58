/**
 * The one file that reaches into @grpc/grpc-js: from a call to its HTTP/2 stream and the connection beneath, which the
 * library does not expose (`getPeer()` is `unknown` for a stream that is not a TCP socket). The path
 * `call.call.stream.session.socket` is private, so the version is pinned and `checkGrpcInternals` checks the path at
 * start. The same file guards the one place where the library trusts its peer too much (`guardRefusals`), and tells of
 * every call that is over, those included that the library refuses by itself (`watchCalls`).
 */
import { once } from 'node:events';
import { connect } from 'node:http2';
import type { Http2Session, ServerHttp2Stream } from 'node:http2';
import { createConnection, createServer } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';
import { duplexPair } from 'node:stream';
import type { Duplex } from 'node:stream';
import { Server, ServerCredentials } from '@grpc/grpc-js';
import type { ServerDuplexStream } from '@grpc/grpc-js';
import { withDeadline } from '../../kernel/background.js';
import type { AgentConnection } from './agent-stream.js';

/** HTTP/2 wraps the socket in a proxy: a property is passed through, identity is not. */
const connectionKey = Symbol('agent connection');
const checkWithinMs = 5_000;

/** A TCP socket carries the mark itself; any other stream is wrapped once more by HTTP/2, in `stream`. */
type Marked = Duplex & { [connectionKey]?: AgentConnection; readonly stream?: Marked };

interface CallInside {
  readonly call?: { readonly stream?: ServerHttp2Stream };
}

/** Marks the stream of a connection. Must be called before the gRPC server gets it. */
export function markConnection(connection: AgentConnection): void {
  (connection.stream as Marked)[connectionKey] = connection;
}

/** The HTTP/2 stream of a call, or undefined if the library keeps it elsewhere. */
export function http2StreamOf(call: object): ServerHttp2Stream | undefined {
  return (call as CallInside).call?.stream;
}

/** The connection of a call, or undefined if it has just closed. */
export function connectionOf(call: object): AgentConnection | undefined {
  return connectionOfStream(http2StreamOf(call));
}

function connectionOfStream(stream: ServerHttp2Stream | undefined): AgentConnection | undefined {
  try {
    const socket = stream?.session?.socket as Marked | undefined;
    return socket?.[connectionKey] ?? socket?.stream?.[connectionKey];
  } catch {
    // The HTTP/2 session has already released its socket.
    return undefined;
  }
}

/** How the library refuses a call, by content type or by path. */
interface RefusalsInside {
  _verifyContentType: (stream: ServerHttp2Stream, headers: object) => boolean;
  _respondWithError: (error: object, stream: ServerHttp2Stream, info?: object | null) => void;
}

/**
 * Lets a server refuse a call only while the call's stream is there. The library answers without looking: where one write
 * has brought a request and the end of its stream, the answer throws in the event loop and ends the process.
 * @throws Error if the library has changed
 */
export function guardRefusals(server: Server): void {
  const inside = server as unknown as RefusalsInside;
  const { _verifyContentType: verifyContentType, _respondWithError: respondWithError } = inside;
  if (typeof verifyContentType !== 'function' || typeof respondWithError !== 'function') {
    throw new Error(changedLibrary('refuses a call'));
  }
  const isGone = (stream: ServerHttp2Stream): boolean => stream.destroyed || stream.closed;
  inside._verifyContentType = (stream, headers) => !isGone(stream) && verifyContentType.call(server, stream, headers);
  inside._respondWithError = (error, stream, info) => {
    if (!isGone(stream)) respondWithError.call(server, error, stream, info);
  };
}

/** How the library takes a call from its HTTP/2 session. */
interface CallsInside {
  _streamHandler: (this: Server, interceptors: unknown, stream: ServerHttp2Stream, headers: object) => void;
}

/**
 * Calls back when the stream of a call has closed, whoever answered it. Must be called before the server gets a
 * connection.
 * @throws Error if the library has changed
 */
export function watchCalls(
  server: Server,
  onClosed: (stream: ServerHttp2Stream, connection: AgentConnection, session: Http2Session | undefined) => void,
): void {
  const inside = server as unknown as CallsInside;
  const { _streamHandler: streamHandler } = inside;
  if (typeof streamHandler !== 'function') throw new Error(changedLibrary('takes a call'));
  inside._streamHandler = (interceptors, stream, headers) => {
    const connection = connectionOfStream(stream);
    // A stream that has closed no longer knows its session.
    const { session } = stream;
    if (connection !== undefined) stream.once('close', () => onClosed(stream, connection, session));
    streamHandler.call(server, interceptors, stream, headers);
  };
}

function changedLibrary(what: string): string {
  return `The installed @grpc/grpc-js ${what} in another way than this service expects: install the version in package-lock.json.`;
}

/**
 * Makes one call over each kind of stream to a gRPC server of its own, and checks that its connection is found and its end
 * is told.
 * @throws Error if the library has changed
 */
export async function checkGrpcInternals(): Promise<void> {
  for (const pair of [await socketPair(), duplexPair()]) {
    if (await isCallKnown(pair)) continue;
    throw new Error(changedLibrary('keeps the connection of a call'));
  }
}

type Pair = readonly [Duplex, Duplex];

async function isCallKnown([serviceEnd, agentEnd]: Pair): Promise<boolean> {
  const connection: AgentConnection = {
    id: 0,
    remoteAddress: '',
    stream: serviceEnd,
    closed: false,
    sessionOpened: () => undefined,
    sessionEnded: () => undefined,
    onClose: () => undefined,
    destroy: () => serviceEnd.destroy(),
  };
  const server = new Server({ 'grpc.enable_channelz': 0 });
  const endTold = new Promise<boolean>((resolve) => watchCalls(server, (_stream, of) => resolve(of === connection)));
  const connectionFound = new Promise<boolean>((resolve) => {
    const pass = (bytes: Buffer): Buffer => bytes;
    server.register(
      '/self.Check/Stream',
      (call: ServerDuplexStream<Buffer, Buffer>) => {
        resolve(connectionOf(call) === connection && typeof http2StreamOf(call)?.close === 'function');
        call.end();
      },
      pass,
      pass,
      'bidi',
    );
  });
  const injector = server.createConnectionInjector(ServerCredentials.createInsecure());
  markConnection(connection);
  injector.injectConnection(serviceEnd);
  const client = connect('http://localhost', { createConnection: () => agentEnd });
  try {
    client.on('error', () => undefined);
    const request = client.request({
      ':method': 'POST',
      ':path': '/self.Check/Stream',
      'content-type': 'application/grpc',
      te: 'trailers',
    });
    request.on('error', () => undefined);
    request.resume();
    request.end();
    const both = Promise.all([connectionFound, endTold]).then((known) => !known.includes(false));
    return (await withDeadline(both, checkWithinMs)) === true;
  } finally {
    client.destroy();
    injector.destroy();
    server.forceShutdown();
    serviceEnd.destroy();
    agentEnd.destroy();
  }
}

/** The two ends of a TCP connection over loopback. */
async function socketPair(): Promise<Pair> {
  const server = createServer();
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const agentEnd = createConnection((server.address() as AddressInfo).port, '127.0.0.1');
  const [serviceEnd] = (await once(server, 'connection')) as [Socket];
  server.close();
  return [serviceEnd, agentEnd];
}
