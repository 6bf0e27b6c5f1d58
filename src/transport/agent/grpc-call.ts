/**
 * One gRPC call on its HTTP/2 stream: messages in and out, pauses, and the status at its end. `grpc-server.ts` creates calls and
 * knows the methods. Implements the gRPC framing of `docs/contract/wire.md#services`.
 */
import type { ServerHttp2Stream } from 'node:http2';
import { GrpcStatus, unreachable } from '../../kernel/errors.js';
import { limits } from '../../kernel/limits.js';
import type { AgentConnection } from '../listener/connection.js';
import type { AgentStream, StreamHandlers, StreamStatus } from './agent-stream.js';
import { MessageReader, acceptedEncodings, decompressed, framedMessage } from './grpc-messages.js';

/** Whether a call makes sense to this service; `unknown` until a handler has decided. */
type CallVerdict = 'sound' | 'faulty' | 'unknown';

const responseHeaders = {
  ':status': 200,
  'content-type': 'application/grpc+proto',
  'grpc-accept-encoding': acceptedEncodings,
};

const ok: StreamStatus = { code: GrpcStatus.OK, details: '' };
const tooLarge: StreamStatus = {
  code: GrpcStatus.RESOURCE_EXHAUSTED,
  details: `a message is larger than ${limits.agent.grpcMessageBytes} bytes`,
};

/** A class, because each agent has one: see `src/channel/noise/cipher-state.ts`. */
export class GrpcCall implements AgentStream {
  readonly #http2: ServerHttp2Stream;
  readonly #encoding: string;
  #reader: MessageReader | undefined;
  #handlers: StreamHandlers | undefined;
  #paused = false;
  #closing = false;
  #over = false;
  verdict: CallVerdict = 'unknown';
  readonly connection: AgentConnection;

  /** @param encoding of compressed messages of the peer */
  constructor(http2: ServerHttp2Stream, connection: AgentConnection, encoding: string) {
    this.#http2 = http2;
    this.#encoding = encoding;
    this.connection = connection;
    http2.once('close', () => this.#end());
  }

  judge(verdict: CallVerdict): void {
    this.verdict = verdict;
  }
  get over(): boolean {
    return this.#over || this.connection.closed;
  }
  start(handlers: StreamHandlers): void {
    this.#handlers = handlers;
    this.#reader = new MessageReader();
    this.#http2.on('data', (piece: Buffer) => this.#take(piece));
    this.#http2.on('end', () => {
      if (!this.#over && !this.#closing) handlers.halfClosed();
    });
  }
  send(bytes: Uint8Array, done: () => void): void {
    if (this.#over || this.#closing || this.#isGone) return;
    if (!this.#http2.headersSent) this.#http2.respond(responseHeaders, { waitForTrailers: true });
    this.#http2.write(framedMessage(bytes), (error?: Error | null) => {
      if (!this.#over && (error === undefined || error === null)) done();
    });
  }
  pause(paused: boolean): void {
    if (this.#over) return;
    this.#paused = paused;
    if (paused) this.#http2.pause();
    // Deferred, because the caller is busy: messages of the last piece may wait here.
    else queueMicrotask(() => this.#readOn());
  }
  close(status: StreamStatus, trailers: { readonly [name: string]: string } = {}): void {
    if (this.#over || this.#closing) return;
    this.#closing = true;
    const http2 = this.#http2;
    if (this.#isGone) return;
    const statusHeaders = { 'grpc-status': status.code, 'grpc-message': encodeURI(status.details), ...trailers };
    if (http2.headersSent) {
      http2.once('wantTrailers', () => {
        http2.sendTrailers(statusHeaders);
        this.#end();
      });
      http2.end();
    } else {
      http2.respond({ ...responseHeaders, ...statusHeaders }, { endStream: true });
      this.#end();
    }
    // Keeps reading, so that what the peer still sends is discarded and its end is noticed.
    if (this.#handlers !== undefined) http2.resume();
  }
  kill(): void {
    this.connection.destroy();
  }

  /** The library throws when it answers on a stream that has just ended. */
  get #isGone(): boolean {
    return this.#http2.destroyed || this.#http2.closed;
  }
  #take(piece: Buffer): void {
    if (this.#over || this.#closing) return;
    this.#reader?.add(piece);
    this.#deliver();
  }
  #deliver(): void {
    const reader = this.#reader;
    while (reader !== undefined && !this.#over && !this.#closing && !this.#paused) {
      const message = reader.next();
      if (message === undefined) return;
      const bytes = message === 'too_large' || !reader.compressed ? message : decompressed(this.#encoding, message);
      if (typeof bytes === 'string') return this.close(refusalOf(bytes, this.#encoding));
      this.#handlers?.message(bytes);
    }
  }
  #readOn(): void {
    this.#deliver();
    if (!this.#over && !this.#paused) this.#http2.resume();
  }
  /** The status was sent, or the stream has closed. */
  #end(): void {
    if (this.#over) return;
    this.#over = true;
    closeLater(this.#http2);
    this.#handlers?.gone();
  }
}

function refusalOf(why: 'too_large' | 'invalid' | 'unknown_encoding', encoding: string): StreamStatus {
  switch (why) {
    case 'too_large':
      return tooLarge;
    case 'invalid':
      return { code: GrpcStatus.INTERNAL, details: 'a compressed message does not decompress' };
    case 'unknown_encoding':
      return { code: GrpcStatus.UNIMPLEMENTED, details: `grpc-encoding: ${encoding} is not supported` };
    default:
      return unreachable(why);
  }
}

/** A peer that keeps its half of an ended stream open would occupy one of the connection's few streams. */
function closeLater(stream: ServerHttp2Stream): void {
  if (stream.closed || stream.destroyed) return;
  const timer = setTimeout(() => stream.close(), limits.agent.closeGraceMs);
  timer.unref();
  stream.once('close', () => clearTimeout(timer));
}

/** Answers a unary call: `answer` gets the one message of the request. */
export function serveUnary(call: GrpcCall, answer: (request: Uint8Array) => Promise<void>): void {
  let request: Uint8Array | undefined;
  const refuse = (details: string): void => call.close({ code: GrpcStatus.UNIMPLEMENTED, details });
  call.start({
    message(bytes) {
      if (request === undefined) request = bytes;
      else refuse('the request has more than one message');
    },
    halfClosed() {
      if (request === undefined) refuse('the request has no message');
      else void answer(request);
    },
    gone: () => undefined,
  });
}

/** Sends the answer to a unary call. */
export function respond(call: GrpcCall, response: Uint8Array): void {
  call.send(response, () => undefined);
  call.close(ok);
}
