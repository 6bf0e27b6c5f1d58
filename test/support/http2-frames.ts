/** HTTP/2 frames written by hand, to put on a connection what no HTTP/2 library would send. Not a library: no state. */
import { h2cPreface } from '../../src/transport/listener/first-bytes.js';

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

/** A header list as literals that enter no table, so it is the same on every connection. */
export function headerList(headers: Readonly<Record<string, string>>): Buffer {
  const text = (value: string): Buffer => {
    const bytes = Buffer.from(value, 'latin1');
    if (bytes.length > 126) throw new RangeError('a longer string needs more than one length byte');
    return Buffer.concat([Buffer.from([bytes.length]), bytes]);
  };
  return Buffer.concat(Object.entries(headers).flatMap(([name, value]) => [Buffer.from([0]), text(name), text(value)]));
}

export function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
}

/** What every connection begins with. */
export const opening = Buffer.concat([h2cPreface, frame(FrameType.settings, 0, 0)]);

export const rstStream = (stream: number, code = 8): Buffer => frame(FrameType.rstStream, 0, stream, uint32(code));

export const goAway = (): Buffer => frame(FrameType.goAway, 0, 0, Buffer.concat([uint32(0), uint32(0)]));
