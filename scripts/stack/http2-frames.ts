/**
 * Hand-written HTTP/2 frames: those that no HTTP/2 library would send, and those that light agents send cheaply.
 * Stateless. For the tests, the benchmarks of attacks and `scripts/simulate/`; not part of the service.
 */
import { h2cPreface } from '../../src/transport/listener/sniff.js';

export const FrameType = {
  data: 0,
  headers: 1,
  priority: 2,
  rstStream: 3,
  settings: 4,
  ping: 6,
  goAway: 7,
  windowUpdate: 8,
  continuation: 9,
} as const;

export const endStream = 0x1;
export const endHeaders = 0x4;

export function frame(type: number, flags: number, stream: number, payload: Uint8Array = new Uint8Array()): Buffer {
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.length, 0, 3);
  head.writeUInt8(type, 3);
  head.writeUInt8(flags, 4);
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, payload]);
}

/** A string in a header list, without Huffman coding. */
function text(value: string): Buffer {
  const bytes = Buffer.from(value, 'latin1');
  if (bytes.length < 127) return Buffer.concat([Buffer.from([bytes.length]), bytes]);
  const length = [127];
  let rest = bytes.length - 127;
  for (; rest > 127; rest >>= 7) length.push((rest & 127) | 128);
  return Buffer.concat([Buffer.from([...length, rest]), bytes]);
}

const literals = (first: number, headers: Readonly<Record<string, string>>): Buffer =>
  Buffer.concat(Object.entries(headers).flatMap(([name, value]) => [Buffer.from([first]), text(name), text(value)]));

/** A header list of literals that enter no table, so it is the same on every connection. */
export const headerList = (headers: Readonly<Record<string, string>>): Buffer => literals(0x00, headers);

/** A header list of literals that enter the receiver's table. */
export const tableFilling = (headers: Readonly<Record<string, string>>): Buffer => literals(0x40, headers);

/** The headers of an OpenSession call. */
export const openSessionHeaders: Readonly<Record<string, string>> = {
  ':method': 'POST',
  ':scheme': 'http',
  ':authority': 'a',
  ':path': '/svc.control.v1.SecureAgentService/OpenSession',
  'content-type': 'application/grpc',
  te: 'trailers',
};

/** 32 bits, most significant byte first. */
export function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
}

/** The bytes that every connection starts with. */
export const opening = Buffer.concat([h2cPreface, frame(FrameType.settings, 0, 0)]);

export const rstStream = (stream: number, code = 8): Buffer => frame(FrameType.rstStream, 0, stream, uint32(code));

/** @internal exported for tests */
export const goAway = (): Buffer => frame(FrameType.goAway, 0, 0, Buffer.concat([uint32(0), uint32(0)]));

/** The whole frames in bytes that a server has sent. @internal exported for tests */
export function framesIn(
  bytes: Buffer,
): { readonly type: number; readonly stream: number; readonly payload: Buffer }[] {
  const frames = [];
  for (let at = 0; at + 9 <= bytes.length;) {
    const end = at + 9 + bytes.readUIntBE(at, 3);
    if (end > bytes.length) break;
    frames.push({
      type: bytes.readUInt8(at + 3),
      stream: bytes.readUInt32BE(at + 5),
      payload: bytes.subarray(at + 9, end),
    });
    at = end;
  }
  return frames;
}
