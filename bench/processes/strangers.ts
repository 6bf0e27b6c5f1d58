/**
 * A separate process that holds connections without a key open at the agent listener of the benchmark's own service: each
 * sends one piece of bytes and then nothing. Bounded: at most `count` connections, until it is told to stop.
 */
import { createConnection, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import {
  endHeaders,
  endStream,
  frame,
  FrameType,
  headerList,
  opening,
  openSessionHeaders,
  tableFilling,
} from '../../scripts/stack/http2-frames.js';
import { h2cPreface } from '../../src/transport/listener/sniff.js';
import { answerParent } from '../child.js';
import type { Kind } from '../stranger-kinds.js';

export interface StartStrangers {
  readonly kind: Kind;
  readonly host: string;
  readonly port: number;
  readonly count: number;
  /** The address that the service takes for a balancer; only strangers of that kind come from there. */
  readonly balancer: string;
}

const sockets = new Set<Socket>();

answerParent({
  /** Connects all, in steps that the accept queue can hold, and sends their bytes. */
  async start({ kind, host, port, count, balancer }: StartStrangers) {
    const bytes = bytesOf(kind);
    for (let index = 0; index < count; index += 1) {
      const localAddress = kind === 'proxy_header_cut_off' ? balancer : `127.0.0.${3 + (index % 200)}`;
      const socket = createConnection({ host, port, localAddress });
      sockets.add(socket);
      socket.on('error', () => undefined);
      socket.once('close', () => sockets.delete(socket));
      socket.resume();
      if (bytes.length > 0) socket.write(bytes);
      if (index % 100 === 99) await delay(40);
    }
  },
  /** How many are still open. */
  open: () => sockets.size,
  stop() {
    for (const socket of sockets) socket.destroy();
  },
});

function bytesOf(kind: Kind): Buffer {
  switch (kind) {
    case 'silent':
      return Buffer.alloc(0);
    case 'proxy_header_cut_off':
      // A header of 2,000 bytes, the last of which never come.
      return Buffer.concat([Buffer.from('0d0a0d0a000d0a515549540a200007c0', 'hex'), Buffer.alloc(1_900)]);
    case 'preface':
      return Buffer.from(h2cPreface);
    case 'half_preface':
      return Buffer.from(h2cPreface.subarray(0, 12));
    case 'settings':
      return opening;
    case 'one_call':
      return Buffer.concat([opening, call(1)]);
    case 'four_calls_with_large_headers': {
      const large = headerList(numbered(7, 'x-', 'v'.repeat(1_000)));
      return Buffer.concat([opening, ...[1, 3, 5, 7].map((stream) => call(stream, large))]);
    }
    case 'half_header_list': {
      const list = Buffer.concat([request, headerList({ x: 'v'.repeat(60_000) })]);
      return Buffer.concat([opening, frame(FrameType.headers, 0, 1, list.subarray(0, 16_384))]);
    }
    case 'half_frame':
      return Buffer.concat([opening, frame(FrameType.goAway, 0, 0, Buffer.alloc(16_000)).subarray(0, -5)]);
    case 'half_request':
      return Buffer.concat([
        opening,
        call(1),
        frame(FrameType.data, 0, 1, Buffer.concat([messageOf(60_000), Buffer.alloc(16_000)])),
      ]);
    case 'request_in_pieces': {
      const pieces = Array.from({ length: 1_500 }, () => frame(FrameType.data, 0, 1, Buffer.alloc(1)));
      return Buffer.concat([opening, call(1), frame(FrameType.data, 0, 1, messageOf(60_000)), ...pieces]);
    }
    case 'header_table': {
      const list = Buffer.concat([request, tableFilling(numbered(50, 'x', '1'))]);
      return Buffer.concat([opening, frame(FrameType.headers, endHeaders | endStream, 1, list)]);
    }
    case 'pings':
      return Buffer.concat([
        opening,
        ...Array.from({ length: 900 }, () => frame(FrameType.ping, 0, 0, Buffer.alloc(8))),
      ]);
    default:
      return kind satisfies never;
  }
}

/** This many headers with the same value. */
function numbered(count: number, name: string, value: string): Readonly<Record<string, string>> {
  return Object.fromEntries(Array.from({ length: count }, (_, index) => [`${name}${index}`, value]));
}

/** The beginning of a gRPC message of that length. */
function messageOf(length: number): Buffer {
  const head = Buffer.alloc(5);
  head.writeUInt32BE(length, 1);
  return head;
}

const request = headerList(openSessionHeaders);
const call = (stream: number, more: Buffer = Buffer.alloc(0)): Buffer =>
  frame(FrameType.headers, endHeaders, stream, Buffer.concat([request, more]));
