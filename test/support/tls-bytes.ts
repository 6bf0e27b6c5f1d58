/** ClientHellos made by hand, and first bytes cut into records and segments, for tests of what reads them. */
import { Duplex } from 'node:stream';
import { connect } from 'node:tls';

const u16 = (value: number): Buffer => Buffer.from([value >> 8, value & 255]);
const vector8 = (bytes: Buffer): Buffer => Buffer.concat([Buffer.from([bytes.length]), bytes]);
const vector16 = (bytes: Buffer): Buffer => Buffer.concat([u16(bytes.length), bytes]);

export function extension(type: number, content: Buffer): Buffer {
  return Buffer.concat([u16(type), vector16(content)]);
}

export function serverNameExtension(...names: readonly string[]): Buffer {
  const list = names.map((name) => Buffer.concat([Buffer.from([0]), vector16(Buffer.from(name, 'latin1'))]));
  return extension(0, vector16(Buffer.concat(list)));
}

/** A ClientHello as a handshake message; undefined extensions are left out, their length as well. */
export function helloMessage(extensions: readonly Buffer[] | undefined): Buffer {
  const body = Buffer.concat([
    Buffer.from([3, 3]),
    Buffer.alloc(32, 7),
    vector8(Buffer.alloc(32, 8)),
    vector16(Buffer.from([0x13, 0x01, 0x13, 0x02])),
    vector8(Buffer.from([0])),
    ...(extensions === undefined ? [] : [vector16(Buffer.concat(extensions))]),
  ]);
  return Buffer.concat([Buffer.from([1, body.length >> 16]), u16(body.length & 0xffff), body]);
}

/** A handshake message in records of at most `size` bytes. */
export function records(message: Buffer, size = 16_384): Buffer {
  const parts: Buffer[] = [];
  for (let at = 0; at < message.length; at += size) {
    parts.push(Buffer.from([22, 3, 1]), vector16(message.subarray(at, at + size)));
  }
  return Buffer.concat(parts);
}

export function helloFor(name: string, recordSize?: number): Buffer {
  return records(helloMessage([extension(10, Buffer.from([0, 2, 0, 29])), serverNameExtension(name)]), recordSize);
}

/** The first flight that Node's own TLS client sends. */
export async function realHello(servername?: string): Promise<Buffer> {
  return new Promise((resolve) => {
    const wire = new Duplex({
      read: () => undefined,
      write(chunk: Buffer) {
        resolve(chunk);
        wire.destroy();
      },
    });
    const client = connect({ socket: wire, ...(servername === undefined ? {} : { servername }) });
    client.on('error', () => undefined);
  });
}
