/**
 * A separate process that holds connections without a key open at the agent listener of the benchmark's own service: each
 * sends one piece of bytes and then nothing. Bounded: at most `count` connections, until it is told to stop.
 */
import { createConnection } from 'node:net';
import type { Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { answerParent } from '../child.js';
import type { Kind } from '../strangers.js';

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
      return preface;
    case 'half_preface':
      return preface.subarray(0, 12);
    case 'settings':
      return opening;
    case 'one_call':
      return Buffer.concat([opening, call(1)]);
    case 'four_calls_with_large_headers': {
      const large = Array.from({ length: 7 }, (_, index) => literal(0x00, `x-${index}`, 'v'.repeat(1_000)));
      return Buffer.concat([opening, ...[1, 3, 5, 7].map((stream) => call(stream, large))]);
    }
    case 'half_header_list': {
      const list = Buffer.concat([...request, literal(0x00, 'x', 'v'.repeat(60_000))]);
      return Buffer.concat([opening, frame(1, 0, 1, list.subarray(0, 16_384))]);
    }
    case 'half_frame':
      return Buffer.concat([opening, frame(7, 0, 0, Buffer.alloc(16_000)).subarray(0, -5)]);
    case 'half_request':
      return Buffer.concat([
        opening,
        call(1),
        frame(0, 0, 1, Buffer.concat([messageOf(60_000), Buffer.alloc(16_000)])),
      ]);
    case 'request_in_pieces': {
      const pieces = Array.from({ length: 1_500 }, () => frame(0, 0, 1, Buffer.alloc(1)));
      return Buffer.concat([opening, call(1), frame(0, 0, 1, messageOf(60_000)), ...pieces]);
    }
    case 'header_table': {
      const entries = Array.from({ length: 50 }, (_, index) => literal(0x40, `x${index}`, '1'));
      return Buffer.concat([opening, frame(1, 5, 1, Buffer.concat([...request, ...entries]))]);
    }
    case 'pings':
      return Buffer.concat([opening, ...Array.from({ length: 900 }, () => frame(6, 0, 0, Buffer.alloc(8)))]);
    default:
      return kind satisfies never;
  }
}

function frame(type: number, flags: number, stream: number, payload: Buffer): Buffer {
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.length, 0, 3);
  head.writeUInt8(type, 3);
  head.writeUInt8(flags, 4);
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, payload]);
}

/** The beginning of a gRPC message of that length. */
function messageOf(length: number): Buffer {
  const head = Buffer.alloc(5);
  head.writeUInt32BE(length, 1);
  return head;
}

/** One header, without Huffman coding. @param first 0x00: enters no table, 0x40: enters the receiver's */
function literal(first: number, name: string, value: string): Buffer {
  return Buffer.concat([Buffer.from([first]), text(name), text(value)]);
}

function text(value: string): Buffer {
  if (value.length < 127) return Buffer.concat([Buffer.from([value.length]), Buffer.from(value, 'latin1')]);
  const length = [127];
  let rest = value.length - 127;
  for (; rest > 127; rest >>= 7) length.push((rest & 127) | 128);
  return Buffer.concat([Buffer.from([...length, rest]), Buffer.from(value, 'latin1')]);
}

const preface = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 'latin1');
const opening = Buffer.concat([preface, frame(4, 0, 0, Buffer.alloc(0))]);
const request = Object.entries({
  ':method': 'POST',
  ':scheme': 'http',
  ':authority': 'a',
  ':path': '/svc.control.v1.SecureAgentService/OpenSession',
  'content-type': 'application/grpc',
  te: 'trailers',
}).map(([name, value]) => literal(0x00, name, value));
const call = (stream: number, more: readonly Buffer[] = []): Buffer =>
  frame(1, 4, stream, Buffer.concat([...request, ...more]));
