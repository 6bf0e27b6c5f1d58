/**
 * The one file that reaches into @grpc/grpc-js: from a call to the HTTP/2 stream and the connection beneath it, which
 * the library does not tell (its `getPeer()` is `unknown` for a stream that is not a TCP socket). The path
 * `call.call.stream.session.socket` is private, so the version is pinned and `checkGrpcInternals` proves the path at
 * start. Implements the notes on grpc-js of `docs/architecture.md`.
 */
import { once } from 'node:events';
import { connect } from 'node:http2';
import type { ServerHttp2Stream } from 'node:http2';
import { createConnection, createServer } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';
import { Duplex } from 'node:stream';
import { Server, ServerCredentials } from '@grpc/grpc-js';
import type { ServerDuplexStream } from '@grpc/grpc-js';
import { withDeadline } from '../../kernel/background.js';
import type { AgentConnection } from './agent-stream.js';

/** A property of the socket survives the proxy that HTTP/2 puts around it; identity does not. */
const connectionKey = Symbol('agent connection');
const checkWithinMs = 5_000;

/** The path for a TCP socket, and the one for any other stream, which HTTP/2 wraps once more. */
type Marked = Duplex & { [connectionKey]?: AgentConnection; readonly stream?: Marked };

interface CallInside {
  readonly call?: { readonly stream?: ServerHttp2Stream };
}

/** Marks the stream of a connection, before it is handed to the gRPC server. */
export function markConnection(connection: AgentConnection): void {
  (connection.stream as Marked)[connectionKey] = connection;
}

/** The HTTP/2 stream of a call, undefined when the library keeps it elsewhere. */
export function http2StreamOf(call: object): ServerHttp2Stream | undefined {
  return (call as CallInside).call?.stream;
}

/** The connection that a call came on, undefined when it has just closed. */
export function connectionOf(call: object): AgentConnection | undefined {
  try {
    const socket = http2StreamOf(call)?.session?.socket as Marked | undefined;
    return socket?.[connectionKey] ?? socket?.stream?.[connectionKey];
  } catch {
    // The session has already let go of its socket.
    return undefined;
  }
}

/**
 * Makes one call through a gRPC server of its own over each kind of stream, and looks whether its connection is found.
 * @throws Error in one sentence when the library has changed
 */
export async function checkGrpcInternals(): Promise<void> {
  for (const ends of [await socketPair(), duplexPair()]) {
    if (await isConnectionFound(ends)) continue;
    throw new Error(
      'The installed @grpc/grpc-js keeps the connection of a call elsewhere than this service expects: install the version that package-lock.json names.',
    );
  }
}

type Ends = readonly [Duplex, Duplex];

async function isConnectionFound([serviceEnd, agentEnd]: Ends): Promise<boolean> {
  const connection: AgentConnection = {
    id: 0,
    remoteAddress: '',
    stream: serviceEnd,
    closed: false,
    onClose: () => undefined,
    destroy: () => serviceEnd.destroy(),
  };
  const server = new Server({ 'grpc.enable_channelz': 0 });
  const found = new Promise<boolean>((resolve) => {
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
    return (await withDeadline(found, checkWithinMs)) === true;
  } finally {
    client.destroy();
    injector.destroy();
    server.forceShutdown();
    serviceEnd.destroy();
    agentEnd.destroy();
  }
}

/** Two ends of a TCP connection to this machine itself. */
async function socketPair(): Promise<Ends> {
  const server = createServer();
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const agentEnd = createConnection((server.address() as AddressInfo).port, '127.0.0.1');
  const [serviceEnd] = (await once(server, 'connection')) as [Socket];
  server.close();
  return [serviceEnd, agentEnd];
}

/** Two ends of a pipe in memory. */
function duplexPair(): Ends {
  const end = (other: () => Duplex): Duplex =>
    new Duplex({
      read: () => undefined,
      write(chunk: Buffer, _encoding, callback) {
        other().push(chunk);
        callback();
      },
      final(callback) {
        other().push(null);
        callback();
      },
    });
  const first: Duplex = end(() => second);
  const second: Duplex = end(() => first);
  return [first, second];
}
