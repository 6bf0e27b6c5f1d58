/**
 * The client's end of one HTTP/2 connection for gRPC, hand-written on a socket: it takes half the processor time and memory of
 * node:http2, so that agents take less of the machine than the service. Only what an agent needs: no dynamic header tables,
 * priorities, pushes or compression. Anything else from the peer ends the connection. Follows RFC 9113 and the gRPC protocol
 * over HTTP/2.
 */
import { connect } from 'node:net';
import { FrameType, endHeaders, endStream, frame, headerList, rstStream, uint32 } from '../../stack/http2-frames.js';
import { limits } from '../../../src/kernel/limits.js';
import { formatHostPort, type HostPort } from '../../../src/kernel/host-port.js';
import { h2cPreface } from '../../../src/transport/listener/sniff.js';
import { readTrailers } from './trailers.js';

/** How a call ended. */
export interface CallEnd {
  /** The gRPC status; undefined without one, for example when the connection was lost. */
  readonly status: number | undefined;
  readonly serverTimeMs: number | undefined;
  readonly detail: string;
}

export interface CallHandlers {
  /** One gRPC message. Its bytes are overwritten after the call. */
  onMessage(message: Buffer): void;
  /** Called once, as the last call. */
  onEnd(end: CallEnd): void;
}

export interface Call {
  /** Queues a message; without window, it waits here. After the end, it is dropped. */
  send(message: Uint8Array): void;
  /** No further messages follow. */
  halfClose(): void;
  cancel(): void;
}

export interface Connection {
  call(path: string, handlers: CallHandlers): Call;
  /** Whether received bytes are credited, so that the peer may send more. The connection itself stays alive. */
  reading(on: boolean): void;
  /** Closes the socket at once; calls end without a status. */
  destroy(detail: string): void;
}

interface ConnectionOptions {
  readonly endpoint: HostPort;
  /** How many bytes of one stream the peer may send before they are credited. */
  readonly windowBytes: number;
  /** Called once, when the connection is gone, for whatever reason. */
  readonly onClosed: (detail: string) => void;
}

/** How many bytes a peer may send ahead by default in HTTP/2. */
export const defaultWindow = 65_535;
/** Unsent bytes at which the connection is given up. */
const sendQueueBytes = 4 * 1024 * 1024;
const maxFrameBytes = 16_384;
const frameHead = 9;
const grpcHead = 5;
const ack = 0x1;
const settingIds = { headerTableSize: 1, enablePush: 2, initialWindowSize: 4 } as const;

/** All connections of a process read into the same memory, because each read is handled before the next one starts. */
const readBuffer = Buffer.allocUnsafe(64 * 1024);

function openingOf(windowBytes: number): Buffer {
  const settings = Buffer.alloc(18);
  const values = [
    [settingIds.headerTableSize, 0],
    [settingIds.enablePush, 0],
    [settingIds.initialWindowSize, windowBytes],
  ] as const;
  for (const [index, [id, value]] of values.entries()) {
    settings.writeUInt16BE(id, index * 6);
    settings.writeUInt32BE(value, index * 6 + 2);
  }
  return Buffer.concat([h2cPreface, frame(FrameType.settings, 0, 0, settings)]);
}

const headerBlocks = new Map<string, Buffer>();

/** Created once, because it is the same for each call of a path on a host. */
function headersOf(authority: string, path: string): Buffer {
  const key = `${authority}${path}`;
  const known = headerBlocks.get(key);
  if (known !== undefined) return known;
  const block = headerList({
    ':method': 'POST',
    ':scheme': 'http',
    ':path': path,
    ':authority': authority,
    te: 'trailers',
    'content-type': 'application/grpc',
    'user-agent': 'light-agent',
  });
  headerBlocks.set(key, block);
  return block;
}

interface Stream {
  readonly id: number;
  readonly handlers: CallHandlers;
  /** How much the peer allows this end to send. */
  sendWindow: number;
  /** Message bytes waiting for a window. */
  waiting: Buffer[];
  ending: boolean;
  endSent: boolean;
  /** Received, but not credited yet. */
  uncredited: number;
  /** The start of a message. */
  partial: Buffer | undefined;
}

/** Connects. The caller sees a failure as `onClosed`. */
export function openConnection(options: ConnectionOptions): Connection {
  const { endpoint, windowBytes } = options;
  const authority = formatHostPort(endpoint);
  const streams = new Map<number, Stream>();
  let nextStream = 1;
  let sendWindow = defaultWindow;
  let peerWindow = defaultWindow;
  let uncredited = 0;
  let credits = true;
  let waitingBytes = 0;
  let partial: Buffer | undefined;
  let closed = false;
  let out: Buffer[] = [openingOf(windowBytes)];
  let flushing = false;

  const socket = connect({
    host: endpoint.host,
    port: endpoint.port,
    noDelay: true,
    onread: {
      buffer: readBuffer,
      callback(length, buffer) {
        receive(Buffer.from(buffer.buffer, buffer.byteOffset, length));
        return true;
      },
    },
  });
  let failure = 'the connection was closed';
  socket.on('error', (error) => {
    failure = error.message;
  });
  socket.on('end', () => close(failure));
  socket.on('close', () => close(failure));

  const close = (detail: string): void => {
    if (closed) return;
    closed = true;
    socket.destroy();
    const open = [...streams.values()];
    streams.clear();
    for (const { handlers } of open) handlers.onEnd({ status: undefined, serverTimeMs: undefined, detail });
    options.onClosed(detail);
  };

  const flush = (): void => {
    flushing = false;
    if (closed) return;
    const [first] = out;
    if (first !== undefined) socket.write(out.length === 1 ? first : Buffer.concat(out));
    out = [];
  };
  /** Everything written in one turn is sent in one packet. */
  const write = (bytes: Buffer): void => {
    out.push(bytes);
    if (flushing) return;
    flushing = true;
    queueMicrotask(flush);
  };

  /** Sends as much of the waiting bytes as both windows allow. */
  const pump = (stream: Stream): void => {
    for (let next = stream.waiting[0]; next !== undefined; next = stream.waiting[0]) {
      const length = Math.min(next.length, maxFrameBytes, stream.sendWindow, sendWindow);
      if (length <= 0) return;
      const whole = length === next.length;
      if (whole) stream.waiting.shift();
      else stream.waiting[0] = next.subarray(length);
      stream.sendWindow -= length;
      sendWindow -= length;
      waitingBytes -= length;
      const last = whole && stream.waiting.length === 0 && stream.ending;
      stream.endSent ||= last;
      write(frame(FrameType.data, last ? endStream : 0, stream.id, next.subarray(0, length)));
    }
    if (stream.ending && !stream.endSent) {
      stream.endSent = true;
      write(frame(FrameType.data, endStream, stream.id));
    }
  };

  const send = (stream: Stream, message: Uint8Array): void => {
    if (closed || stream.ending || !streams.has(stream.id)) return;
    const length = grpcHead + message.length;
    if (stream.waiting.length === 0 && length <= Math.min(maxFrameBytes, stream.sendWindow, sendWindow)) {
      // The usual case, without the copies of the general one: both heads and the message in one piece.
      const bytes = Buffer.allocUnsafe(frameHead + length);
      bytes.writeUIntBE(length, 0, 3);
      bytes.writeUInt16BE(FrameType.data << 8, 3);
      bytes.writeUInt32BE(stream.id, 5);
      bytes.writeUInt8(0, frameHead);
      bytes.writeUInt32BE(message.length, frameHead + 1);
      bytes.set(message, frameHead + grpcHead);
      stream.sendWindow -= length;
      sendWindow -= length;
      write(bytes);
      return;
    }
    const bytes = Buffer.allocUnsafe(length);
    bytes.writeUInt8(0, 0);
    bytes.writeUInt32BE(message.length, 1);
    bytes.set(message, grpcHead);
    waitingBytes += length;
    if (waitingBytes > sendQueueBytes) return close('the send queue is full: the service does not read');
    stream.waiting.push(bytes);
    pump(stream);
  };

  const credit = (): void => {
    if (!credits || closed) return;
    if (uncredited >= defaultWindow / 2) {
      write(frame(FrameType.windowUpdate, 0, 0, uint32(uncredited)));
      uncredited = 0;
    }
    for (const stream of streams.values()) {
      if (stream.uncredited < windowBytes / 2) continue;
      write(frame(FrameType.windowUpdate, 0, stream.id, uint32(stream.uncredited)));
      stream.uncredited = 0;
    }
  };

  const end = (stream: Stream, callEnd: CallEnd): void => {
    if (streams.delete(stream.id)) stream.handlers.onEnd(callEnd);
  };

  const onData = (id: number, flags: number, payload: Buffer): void => {
    uncredited += payload.length;
    const stream = streams.get(id);
    if (stream === undefined) return credit();
    stream.uncredited += payload.length;
    let rest = stream.partial === undefined ? payload : Buffer.concat([stream.partial, payload]);
    stream.partial = undefined;
    while (rest.length >= grpcHead) {
      const length = rest.readUInt32BE(1);
      if (rest[0] !== 0 || length > limits.agent.grpcMessageBytes) return close('received an unusable gRPC message');
      if (rest.length < grpcHead + length) break;
      stream.handlers.onMessage(rest.subarray(grpcHead, grpcHead + length));
      if (closed) return;
      rest = rest.subarray(grpcHead + length);
    }
    if (rest.length > 0) stream.partial = Buffer.from(rest);
    credit();
    if ((flags & endStream) !== 0) {
      end(stream, { status: undefined, serverTimeMs: undefined, detail: 'the stream ended without a status' });
    }
  };

  const onHeaders = (id: number, flags: number, payload: Buffer): void => {
    if ((flags & ~(endStream | endHeaders)) !== 0 || (flags & endHeaders) === 0) {
      return close('received headers of a form that this agent does not read');
    }
    const stream = streams.get(id);
    if (stream === undefined || (flags & endStream) === 0) return;
    const { grpcStatus, serverTimeMs } = readTrailers(payload);
    end(stream, { status: grpcStatus, serverTimeMs, detail: `gRPC status ${grpcStatus ?? 'unknown'}` });
  };

  const onSettings = (flags: number, payload: Buffer): void => {
    if ((flags & ack) !== 0) return;
    for (let at = 0; at + 6 <= payload.length; at += 6) {
      if (payload.readUInt16BE(at) !== settingIds.initialWindowSize) continue;
      const value = payload.readUInt32BE(at + 2);
      for (const stream of streams.values()) stream.sendWindow += value - peerWindow;
      peerWindow = value;
    }
    write(frame(FrameType.settings, ack, 0));
    for (const stream of streams.values()) pump(stream);
  };

  const onFrame = (type: number, flags: number, id: number, payload: Buffer): void => {
    switch (type) {
      case FrameType.data:
        return onData(id, flags, payload);
      case FrameType.headers:
        return onHeaders(id, flags, payload);
      case FrameType.settings:
        return onSettings(flags, payload);
      case FrameType.ping:
        if ((flags & ack) === 0) write(frame(FrameType.ping, ack, 0, payload));
        return;
      case FrameType.windowUpdate: {
        const stream = streams.get(id);
        if (id === 0) sendWindow += payload.readUInt32BE(0);
        else if (stream !== undefined) stream.sendWindow += payload.readUInt32BE(0);
        for (const each of streams.values()) if (each.waiting.length > 0) pump(each);
        return;
      }
      case FrameType.rstStream: {
        const stream = streams.get(id);
        const detail = `the stream was reset with code ${payload.readUInt32BE(0)}`;
        if (stream !== undefined) end(stream, { status: undefined, serverTimeMs: undefined, detail });
        return;
      }
      case FrameType.continuation:
        return close('received headers of a form that this agent does not read');
      default:
        // GOAWAY announces the reason for closing the connection afterwards; unknown types are ignored.
        return;
    }
  };

  const receive = (bytes: Buffer): void => {
    let rest = partial === undefined ? bytes : Buffer.concat([partial, bytes]);
    partial = undefined;
    while (rest.length >= frameHead && !closed) {
      const length = rest.readUIntBE(0, 3);
      if (length > maxFrameBytes) return close('received a frame that is too long');
      if (rest.length < frameHead + length) break;
      const payload = rest.subarray(frameHead, frameHead + length);
      onFrame(rest.readUInt8(3), rest.readUInt8(4), rest.readUInt32BE(5), payload);
      rest = rest.subarray(frameHead + length);
    }
    if (!closed && rest.length > 0) partial = Buffer.from(rest);
  };

  return {
    call(path, handlers) {
      const stream: Stream = {
        id: nextStream,
        handlers,
        sendWindow: peerWindow,
        waiting: [],
        ending: false,
        endSent: false,
        uncredited: 0,
        partial: undefined,
      };
      nextStream += 2;
      streams.set(stream.id, stream);
      write(frame(FrameType.headers, endHeaders, stream.id, headersOf(authority, path)));
      return {
        send: (message) => send(stream, message),
        halfClose() {
          if (closed || stream.ending || !streams.has(stream.id)) return;
          stream.ending = true;
          pump(stream);
        },
        cancel() {
          if (closed || !streams.delete(stream.id)) return;
          write(rstStream(stream.id));
          handlers.onEnd({ status: undefined, serverTimeMs: undefined, detail: 'cancelled' });
        },
      };
    },
    reading(on) {
      credits = on;
      credit();
    },
    destroy: close,
  };
}
