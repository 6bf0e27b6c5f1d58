/**
 * The only file that reaches into @grpc/grpc-js: it gets from a call to its HTTP/2 stream and the underlying
 * connection, which the library does not expose (`getPeer()` is `unknown` for a stream that is not a TCP socket). The
 * path `call.call.stream.session.socket` is private, so the version is pinned exactly, and the tests in
 * `test/agent-protocol` exercise it. The file also reads the stream of a call past the library (`takeReading`), guards
 * the one place where the library trusts its peer too much (`guardRefusals`), bounds the headers of a call
 * (`boundHeaders`), and reports every call and its end (`watchServer`).
 */
import { constants } from 'node:http2';
import type { ServerHttp2Session, ServerHttp2Stream } from 'node:http2';
import type { Duplex } from 'node:stream';
import type { Server } from '@grpc/grpc-js';
import { limits } from '../../kernel/limits.js';
import type { AgentConnection } from '../listener/connection.js';

/** Headers of a call; agents send about ten. */
const headerPairs = 64;

const connectionKey = Symbol('agent connection');

/** HTTP/2 wraps a stream that is not a TCP socket: it is the `stream` of the session's socket. */
interface Marked {
  readonly stream?: { [connectionKey]?: AgentConnection };
}

interface CallInside {
  readonly call?: { readonly stream?: ServerHttp2Stream; readonly incomingEncoding?: string };
}

/** Marks a connection's stream, which is not a TCP socket. Must be called before the gRPC server gets it. */
export function markConnection(connection: AgentConnection, stream: Duplex): void {
  (stream as Marked['stream'] & Duplex)[connectionKey] = connection;
}

/** The HTTP/2 stream of a call; undefined if the library keeps it elsewhere. */
export function http2StreamOf(call: object): ServerHttp2Stream | undefined {
  return (call as CallInside).call?.stream;
}

/**
 * Passes data on a call's HTTP/2 stream to `onData` instead of the library's decoder; the library keeps the end and the
 * status. Must be called before anything was read.
 * @returns false if the library has to decode, because the call's messages may be compressed
 * @throws Error if the library has changed
 */
export function takeReading(call: object, onData: (piece: Buffer) => void): boolean {
  const { stream, incomingEncoding } = (call as CallInside).call ?? {};
  const [decode, ...others] = stream?.listeners('data') ?? [];
  if (stream === undefined || incomingEncoding === undefined || decode === undefined || others.length > 0) {
    throw new Error(changedLibrary('reads a call'));
  }
  if (incomingEncoding !== 'identity') return false;
  stream.off('data', decode as (piece: Buffer) => void);
  stream.on('data', onData);
  return true;
}

/** The connection of a call; undefined if it has just closed. */
export function connectionOf(call: object): AgentConnection | undefined {
  return connectionOfStream(http2StreamOf(call));
}

function connectionOfStream(stream: ServerHttp2Stream | undefined): AgentConnection | undefined {
  return connectionOfSession(stream?.session);
}

function connectionOfSession(session: { readonly socket: unknown } | undefined): AgentConnection | undefined {
  try {
    return (session?.socket as Marked | undefined)?.stream?.[connectionKey];
  } catch {
    // The HTTP/2 session has already released its socket.
    return undefined;
  }
}

/** How the library refuses a call by content type or path. */
interface RefusalsInside {
  _verifyContentType: (stream: ServerHttp2Stream, headers: object) => boolean;
  _respondWithError: (error: object, stream: ServerHttp2Stream, info?: object | null) => void;
}

/**
 * Lets a server refuse a call only while the call's stream exists. The library answers without checking: when one write
 * carries a request and the end of its stream, the answer throws in the event loop and ends the process.
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

/** The options of the HTTP/2 servers that the library makes. */
interface OptionsInside {
  readonly commonServerOptions: {
    settings?: { maxConcurrentStreams?: number; maxHeaderListSize?: number };
    maxHeaderListPairs?: number;
  };
}

/**
 * Bounds the headers of calls, for which the library has no options. The bounds are announced to the peer, but HTTP/2
 * enforces the size of a list only on a peer that has confirmed them, so `watchServer` measures each list too. Must be
 * called before the server gets a connection.
 * @throws Error if the library has changed
 */
export function boundHeaders(server: Server): void {
  const { commonServerOptions: options } = server as unknown as Partial<OptionsInside>;
  if (typeof options !== 'object') throw new Error(changedLibrary('keeps its HTTP/2 settings'));
  options.maxHeaderListPairs = headerPairs;
  options.settings = { ...options.settings, maxHeaderListSize: limits.agent.headerListBytes };
}

/** How the library handles an HTTP/2 session, and a call on it. */
interface CallsInside {
  _sessionHandler: (this: Server, http2Server: unknown) => (session: ServerHttp2Session) => void;
  _streamHandler: (
    this: Server,
    interceptors: unknown,
    stream: ServerHttp2Stream,
    headers: Readonly<Record<string, unknown>>,
    flags?: number,
    rawHeaders?: readonly string[],
  ) => void;
}

interface ServerWatch {
  /** HTTP/2 has started on a connection. */
  started(connection: AgentConnection, session: ServerHttp2Session): void;
  /** A call has started, and is being served. */
  called(connection: AgentConnection, stream: ServerHttp2Stream): void;
  /** The stream of a call has closed, whoever answered it. */
  closed(connection: AgentConnection, stream: ServerHttp2Stream): void;
}

/**
 * Reports every HTTP/2 session and every call, including those that the library refuses by itself. Refuses a call whose
 * header list is too large, and drops headers that the service does not read. Must be called before the server gets a
 * connection.
 * @throws Error if the library has changed
 */
export function watchServer(server: Server, watch: ServerWatch): void {
  const inside = server as unknown as CallsInside;
  const { _sessionHandler: sessionHandler, _streamHandler: streamHandler } = inside;
  if (typeof sessionHandler !== 'function' || typeof streamHandler !== 'function') {
    throw new Error(changedLibrary('takes a call'));
  }
  inside._sessionHandler = (http2Server) => {
    const take = sessionHandler.call(server, http2Server);
    return (session) => {
      const connection = connectionOfSession(session);
      if (connection !== undefined) watch.started(connection, session);
      take(session);
    };
  };
  inside._streamHandler = (interceptors, stream, headers, _flags, rawHeaders = []) => {
    const connection = connectionOfStream(stream);
    if (connection !== undefined) stream.once('close', () => watch.closed(connection, stream));
    if (headerListBytes(rawHeaders) > limits.agent.headerListBytes) {
      stream.on('error', () => undefined);
      stream.close(constants.NGHTTP2_ENHANCE_YOUR_CALM);
      return;
    }
    streamHandler.call(server, interceptors, stream, readHeaders(headers));
    if (connection !== undefined) watch.called(connection, stream);
  };
}

/** The text of an error that only a different version of the library can cause. */
function changedLibrary(what: string): string {
  return `The installed @grpc/grpc-js ${what} in another way than this service expects: install the version in package-lock.json.`;
}

/** The parts of a request that the gRPC library needs to answer it. */
const read = [':path', 'content-type', 'grpc-timeout', 'grpc-encoding'];
/** The service expects no longer values; longer ones are dropped like unread headers. */
const valueChars = 256;
/** What a header counts beyond its name and value (RFC 9113, section 6.5.2). */
const bytesPerHeader = 32;

/**
 * Size as RFC 9113 counts it, in bytes.
 * @param list alternating names and values
 */
function headerListBytes(list: readonly string[]): number {
  let bytes = (list.length / 2) * bytesPerHeader;
  for (const text of list) bytes += text.length;
  return bytes;
}

/** The headers that the service reads. */
function readHeaders(headers: Readonly<Record<string, unknown>>): Record<string, string> {
  const kept: Record<string, string> = {};
  for (const name of read) {
    const value = headers[name];
    if (typeof value === 'string' && value.length <= valueChars) kept[name] = value;
  }
  return kept;
}

/** One byte for the compression flag, then four for the length. @internal exported for tests */
export const messageHeadBytes = 5;

/** A class, because each agent has one: see `src/channel/noise/cipher-state.ts`. */
export class MessageReader {
  /** Bytes that `next` has not returned yet start at `#at`. */
  #bytes: Buffer | undefined;
  #at = 0;
  /** Pieces of an incomplete message, or of its head; undefined without one, as between two heartbeats. */
  #parts: Buffer[] | undefined;
  /** The number of bytes still missing. */
  #missing = 0;

  /** Call only after `next` has returned everything else. */
  add(piece: Buffer): void {
    if (this.#parts === undefined) {
      this.#hold(piece);
      return;
    }
    this.#parts.push(piece);
    this.#missing -= piece.length;
    if (this.#missing > 0) return;
    this.#hold(Buffer.concat(this.#parts));
    this.#parts = undefined;
  }
  /**
   * The next message, which may share the memory of its piece; undefined if it is incomplete. Once one is too large,
   * the rest cannot be read.
   */
  next(): Buffer | 'too_large' | undefined {
    const bytes = this.#bytes;
    if (bytes === undefined) return undefined;
    const from = this.#at + messageHeadBytes;
    let missing = from - bytes.length;
    if (missing <= 0) {
      const length = bytes.readUInt32BE(from - 4);
      if (length > limits.agent.grpcMessageBytes) return 'too_large';
      missing += length;
      if (missing <= 0) {
        const end = from + length;
        this.#at = end;
        if (end === bytes.length) this.#bytes = undefined;
        return bytes.subarray(from, end);
      }
    }
    this.#parts = [bytes.subarray(this.#at)];
    this.#missing = missing;
    this.#bytes = undefined;
    return undefined;
  }
  #hold(bytes: Buffer): void {
    this.#at = 0;
    this.#bytes = bytes.length === 0 ? undefined : bytes;
  }
}

/** A message in gRPC framing: uncompressed, its length, its bytes. */
export function framedMessage(bytes: Uint8Array): Buffer {
  const framed = Buffer.allocUnsafe(messageHeadBytes + bytes.length);
  framed[0] = 0;
  framed.writeUInt32BE(bytes.length, 1);
  framed.set(bytes, messageHeadBytes);
  return framed;
}
