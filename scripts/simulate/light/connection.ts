/** The client's end of one HTTP/2 connection for gRPC, on node:http2, so that one process can hold ten thousand. */
import { connect as connectHttp2 } from 'node:http2';
import type { ClientHttp2Stream, IncomingHttpHeaders } from 'node:http2';
import { connect as connectSocket } from 'node:net';
import { formatHostPort } from '../../../src/kernel/host-port.js';
import type { HostPort } from '../../../src/kernel/host-port.js';
import { limits } from '../../../src/kernel/limits.js';

/** How a call ended. */
export interface CallEnd {
  /** The gRPC status; undefined without one, for example when the connection was lost. */
  readonly status: number | undefined;
  readonly serverTimeMs: number | undefined;
  readonly detail: string;
}

export interface CallHandlers {
  /** One gRPC message. */
  onMessage(message: Buffer): void;
  /** Called once, as the last call. */
  onEnd(end: CallEnd): void;
}

export interface Call {
  /** Queues a message. After the end, it is dropped. */
  send(message: Uint8Array): void;
  /** No further messages follow. */
  halfClose(): void;
}

export interface Connection {
  call(path: string, handlers: CallHandlers): Call;
  /** Whether the calls that are open now read. The connection itself stays alive. */
  reading(on: boolean): void;
  /** Reads this much on each call that does not read. */
  readOnce(bytes: number): void;
  /** Closes the socket at once; calls end without a status. */
  destroy(detail: string): void;
}

interface ConnectionOptions {
  readonly endpoint: HostPort;
  /** How many bytes of one stream the peer may send before they are credited; by default, as HTTP/2 has it. */
  readonly windowBytes?: number;
  /** Called once, when the connection is gone, for whatever reason. */
  readonly onClosed: (detail: string) => void;
}

/** Unsent bytes at which the connection is given up. */
const sendQueueBytes = 4 * 1024 * 1024;
const grpcHead = 5;

/** Connects. The caller sees a failure as `onClosed`. */
export function openConnection({ endpoint, windowBytes, onClosed }: ConnectionOptions): Connection {
  const { host, port } = endpoint;
  const calls = new Map<ClientHttp2Stream, CallHandlers>();
  let closed = false;
  const session = connectHttp2(`http://${formatHostPort(endpoint)}`, {
    // Without a table of headers, the service keeps less for each connection.
    settings: {
      headerTableSize: 0,
      enablePush: false,
      ...(windowBytes === undefined ? {} : { initialWindowSize: windowBytes }),
    },
    createConnection: () => connectSocket({ host, port, noDelay: true }),
  });
  const end = (stream: ClientHttp2Stream, callEnd: CallEnd): void => {
    const handlers = calls.get(stream);
    if (calls.delete(stream)) handlers?.onEnd(callEnd);
  };
  const close = (detail: string): void => {
    if (closed) return;
    closed = true;
    session.destroy();
    for (const stream of calls.keys()) end(stream, { status: undefined, serverTimeMs: undefined, detail });
    onClosed(detail);
  };
  session.on('error', ({ message }) => close(message));
  session.once('close', () => close('the connection was closed'));

  return {
    call(path, handlers) {
      // The service has announced its end, so no call can begin.
      if (session.closed || session.destroyed) {
        queueMicrotask(() => close('the connection is closing'));
        return { send: () => undefined, halfClose: () => undefined };
      }
      const stream = session.request({
        ':method': 'POST',
        ':path': path,
        te: 'trailers',
        'content-type': 'application/grpc',
      });
      calls.set(stream, handlers);
      let status: number | undefined;
      let serverTimeMs: number | undefined;
      const read = (headers: IncomingHttpHeaders): void => {
        status = numberIn(headers['grpc-status']) ?? status;
        serverTimeMs = numberIn(headers['server-time-ms']) ?? serverTimeMs;
      };
      stream.on('response', read);
      stream.on('trailers', read);
      const messages = joinMessages((message) => calls.get(stream)?.onMessage(message));
      stream.on('data', (bytes: Buffer) => {
        if (!messages(bytes)) close('received an unusable gRPC message');
      });
      const ended = (): void => {
        const detail =
          status === undefined ? `the stream was reset with code ${stream.rstCode}` : `gRPC status ${status}`;
        end(stream, { status, serverTimeMs, detail });
      };
      stream.once('end', ended);
      stream.once('close', ended);
      // `close` follows.
      stream.on('error', () => undefined);
      return {
        send(message) {
          if (!stream.writable) return;
          if (stream.writableLength > sendQueueBytes) {
            return close('the send queue is full: the service does not read');
          }
          const bytes = Buffer.allocUnsafe(grpcHead + message.length);
          bytes.writeUInt8(0, 0);
          bytes.writeUInt32BE(message.length, 1);
          bytes.set(message, grpcHead);
          stream.write(bytes);
        },
        halfClose: () => void stream.end(),
      };
    },
    reading(on) {
      for (const stream of calls.keys()) {
        if (on) stream.resume();
        else stream.pause();
      }
    },
    readOnce(bytes) {
      for (const stream of calls.keys()) if (stream.isPaused()) stream.read(Math.min(bytes, stream.readableLength));
    },
    destroy: close,
  };
}

function numberIn(header: string | string[] | undefined): number | undefined {
  return typeof header === 'string' && /^\d{1,15}$/.test(header) ? Number(header) : undefined;
}

/** @returns takes bytes of a stream and hands out its gRPC messages; false for one that is too long or compressed */
function joinMessages(onMessage: (message: Buffer) => void): (bytes: Buffer) => boolean {
  let partial: Buffer | undefined;
  return (bytes) => {
    let rest = partial === undefined ? bytes : Buffer.concat([partial, bytes]);
    while (rest.length >= grpcHead) {
      const length = rest.readUInt32BE(1);
      if (rest[0] !== 0 || length > limits.agent.grpcMessageBytes) return false;
      if (rest.length < grpcHead + length) break;
      onMessage(rest.subarray(grpcHead, grpcHead + length));
      rest = rest.subarray(grpcHead + length);
    }
    partial = rest.length > 0 ? rest : undefined;
    return true;
  };
}
