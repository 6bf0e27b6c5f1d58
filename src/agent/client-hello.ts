/**
 * Reads the server name (SNI) out of the first bytes of a TLS connection. Pure, bounded, and takes any bytes: whatever
 * is no complete, well-formed ClientHello is `other`. The message itself is read in `src/channel/tls/client-hello.ts`.
 */
import { readHelloFields } from '../channel/tls/client-hello.js';
import { messageType, recordHeaderBytes, recordType } from '../channel/tls/codes.js';

export type FirstBytes =
  /** A beginning that could still become a ClientHello; no use to look again before there are `total` bytes. */
  | { readonly kind: 'more'; readonly total: number }
  /** A whole ClientHello; its name is in lower case, without a final dot. */
  | { readonly kind: 'hello'; readonly serverName: string | undefined }
  /** Something else, a malformed ClientHello, or one that is too large. */
  | { readonly kind: 'other' };

const other: FirstBytes = { kind: 'other' };
const recordMax = 16_384;

/**
 * @param bytes everything that the client has sent so far
 * @param maxBytes of the ClientHello with the headers of its records; more is `other`
 */
export function readClientHello(bytes: Uint8Array, maxBytes: number): FirstBytes {
  const parts: Uint8Array[] = [];
  let joined = 0;
  /** Length of the handshake message with its header, once known. */
  let wanted: number | undefined;
  for (let at = 0; ;) {
    // A record begins with its type and a version 3.x: what cannot become one is told at once.
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

/** A name that is none matches no rule, like no name. */
function readName(sent: string): string | undefined {
  const name = sent.toLowerCase().replace(/\.$/, '');
  return namePattern.test(name) ? name : undefined;
}
