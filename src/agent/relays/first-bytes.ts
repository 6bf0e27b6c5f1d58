/**
 * Reads the server name (SNI) of a TLS connection without consuming its first bytes: until there is a ClientHello, the
 * bytes cannot become one, or time is up. Everything read is put back, so that the connection is served from its start.
 * Bounded, and accepts any bytes. `src/channel/tls/client-hello.ts` parses the message itself.
 */
import type { Socket } from 'node:net';
import { readHelloFields } from '../../channel/tls/client-hello.js';
import { messageType, recordHeaderBytes, recordType } from '../../channel/tls/codes.js';

/** The largest ClientHello, including its record headers. */
const clientHelloBytes = 16 * 1024;

export interface Peeked {
  /** Undefined unless a whole ClientHello with a name arrived in time. */
  readonly serverName: string | undefined;
  /** Bytes of a client that has already ended its direction: they cannot be put back. Undefined: they were. */
  readonly ended: Buffer | undefined;
}

/**
 * @param socket paused, and paused again afterwards
 * @param waitMs for the whole ClientHello
 * @returns undefined if the connection was lost
 */
export function peek(socket: Socket, waitMs: number): Promise<Peeked | undefined> {
  return new Promise((resolve) => {
    const chunks: Buffer[] = [];
    let length = 0;
    let needed = 1;

    const settle = (result: Peeked | undefined): void => {
      clearTimeout(timer);
      socket.removeListener('data', onData);
      socket.removeListener('end', onEnd);
      socket.removeListener('close', onClose);
      resolve(result);
    };
    const putBack = (serverName: string | undefined): void => {
      socket.pause();
      if (length > 0) socket.unshift(Buffer.concat(chunks));
      settle({ serverName, ended: undefined });
    };
    const onData = (chunk: Buffer): void => {
      chunks.push(chunk);
      length += chunk.length;
      if (length < needed) return;
      const bytes = Buffer.concat(chunks.splice(0));
      chunks.push(bytes);
      const first = readClientHello(bytes, clientHelloBytes);
      switch (first.kind) {
        case 'more':
          needed = first.total;
          return;
        case 'hello':
          return putBack(first.serverName);
        case 'other':
          return putBack(undefined);
        default:
          first satisfies never;
      }
    };
    const onEnd = (): void => settle({ serverName: undefined, ended: Buffer.concat(chunks) });
    const onClose = (): void => settle(undefined);
    const timer = setTimeout(() => putBack(undefined), waitMs);

    if (socket.destroyed) return settle(undefined);
    socket.on('data', onData);
    socket.once('end', onEnd);
    socket.once('close', onClose);
    socket.resume();
  });
}

export type FirstBytes =
  /** These bytes may still become a ClientHello, but not before there are `total` of them. */
  | { readonly kind: 'more'; readonly total: number }
  /** A whole ClientHello; its name is in lower case, without a final dot. */
  | { readonly kind: 'hello'; readonly serverName: string | undefined }
  /** Something else, a malformed ClientHello, or one that is too large. */
  | { readonly kind: 'other' };

const other: FirstBytes = { kind: 'other' };
const recordMax = 16_384;

/**
 * @internal
 * @param bytes everything that the client has sent so far
 * @param maxBytes of the ClientHello with its record headers; more is `other`
 */
export function readClientHello(bytes: Uint8Array, maxBytes: number): FirstBytes {
  const parts: Uint8Array[] = [];
  let joined = 0;
  /** Length of the handshake message with its header, once known. */
  let wanted: number | undefined;
  for (let at = 0; ;) {
    // A record starts with its type and a version 3.x: anything else is recognised at once.
    if (bytes.length > at && bytes[at] !== recordType.handshake) return other;
    if (bytes.length > at + 1 && bytes[at + 1] !== 3) return other;
    if (bytes.length < at + recordHeaderBytes) return more(at + recordHeaderBytes, maxBytes);
    const length = uint16(bytes, at + 3);
    if (length === 0 || length > recordMax) return other;
    const payload = bytes.subarray(at + recordHeaderBytes, at + recordHeaderBytes + length);
    if (joined === 0 && payload.length > 0 && payload[0] !== messageType.clientHello) return other;
    at += recordHeaderBytes + length;
    if (bytes.length < at) return more(at, maxBytes);
    if (at > maxBytes) return other;
    parts.push(payload);
    joined += length;
    if (joined < 4) continue;
    wanted ??= messageLength(Buffer.concat(parts));
    if (wanted > maxBytes) return other;
    // Joined only when complete, so that many small records cost no more than one look each.
    if (joined >= wanted) return readMessage(Buffer.concat(parts).subarray(0, wanted));
  }
}

function messageLength(header: Uint8Array): number {
  return 4 + (header[1] ?? 0) * 65_536 + uint16(header, 2);
}

function more(total: number, maxBytes: number): FirstBytes {
  return total > maxBytes ? other : { kind: 'more', total };
}

function uint16(bytes: Uint8Array, at: number): number {
  return ((bytes[at] ?? 0) << 8) | (bytes[at + 1] ?? 0);
}

function readMessage(message: Buffer): FirstBytes {
  const hello = readHelloFields(message);
  if (hello === undefined) return other;
  return { kind: 'hello', serverName: hello.serverName === undefined ? undefined : readName(hello.serverName) };
}

const namePattern = /^(?=.{1,253}$)[a-z0-9_-]+(\.[a-z0-9_-]+)*$/;

/** An invalid name matches no rule, just like a missing name. */
function readName(sent: string): string | undefined {
  const name = sent.toLowerCase().replace(/\.$/, '');
  return namePattern.test(name) ? name : undefined;
}
