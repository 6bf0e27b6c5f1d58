/**
 * Reads the server name (SNI) out of the first bytes of a TLS connection. Pure, bounded, and takes any bytes: whatever
 * is no complete, well-formed ClientHello is `other`. Not a TLS implementation: nothing is negotiated here.
 * Implements RFC 8446, sections 4.1.2 and 5.1, and RFC 6066, section 3.
 */

export type FirstBytes =
  /** A beginning that could still become a ClientHello; no use to look again before there are `total` bytes. */
  | { readonly kind: 'more'; readonly total: number }
  /** A whole ClientHello; its name is in lower case, without a final dot. */
  | { readonly kind: 'hello'; readonly serverName: string | undefined }
  /** Something else, a malformed ClientHello, or one that is too large. */
  | { readonly kind: 'other' };

const other: FirstBytes = { kind: 'other' };
const handshakeRecord = 22;
const clientHello = 1;
const recordHeader = 5;
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
    if (bytes.length > at && bytes[at] !== handshakeRecord) return other;
    if (bytes.length > at + 1 && bytes[at + 1] !== 3) return other;
    if (bytes.length < at + recordHeader) return more(at + recordHeader, maxBytes);
    const length = uint16(bytes, at + 3);
    if (length === 0 || length > recordMax) return other;
    const payload = bytes.subarray(at + recordHeader, at + recordHeader + length);
    if (joined === 0 && payload.length > 0 && payload[0] !== clientHello) return other;
    at += recordHeader + length;
    if (bytes.length < at) return more(at, maxBytes);
    if (at > maxBytes) return other;
    parts.push(payload);
    joined += length;
    if (joined < 4) continue;
    wanted ??= messageLength(Buffer.concat(parts));
    if (wanted > maxBytes) return other;
    // Joined only when complete, so that many small records cost no more than one look each.
    if (joined >= wanted) return readMessage(Buffer.concat(parts).subarray(4, wanted));
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

/** Takes fields with a length before them from the front of `bytes`; undefined as soon as one is not whole. */
function createReader(bytes: Uint8Array): {
  readonly left: () => number;
  take(count: number): Uint8Array | undefined;
  vector(lengthBytes: 1 | 2): Uint8Array | undefined;
} {
  let at = 0;
  const take = (count: number): Uint8Array | undefined => {
    if (at + count > bytes.length) return undefined;
    at += count;
    return bytes.subarray(at - count, at);
  };
  return {
    left: () => bytes.length - at,
    take,
    vector(lengthBytes) {
      const length = take(lengthBytes);
      if (length === undefined) return undefined;
      return take(lengthBytes === 1 ? (length[0] ?? 0) : uint16(length, 0));
    },
  };
}

function readMessage(body: Uint8Array): FirstBytes {
  const reader = createReader(body);
  const version = reader.take(2);
  const random = reader.take(32);
  const session = reader.vector(1);
  const ciphers = reader.vector(2);
  const compressions = reader.vector(1);
  if (version?.[0] !== 3 || random === undefined || session === undefined || session.length > 32) return other;
  if (ciphers === undefined || ciphers.length < 2 || ciphers.length % 2 !== 0) return other;
  if (compressions === undefined || compressions.length === 0) return other;
  if (reader.left() === 0) return { kind: 'hello', serverName: undefined };
  const extensions = reader.vector(2);
  if (extensions === undefined || reader.left() !== 0) return other;
  return readExtensions(extensions);
}

const serverNameExtension = 0;
const hostName = 0;

function readExtensions(bytes: Uint8Array): FirstBytes {
  const reader = createReader(bytes);
  let found: { readonly name: string | undefined } | undefined;
  while (reader.left() > 0) {
    const type = reader.take(2);
    const content = reader.vector(2);
    if (type === undefined || content === undefined) return other;
    if (uint16(type, 0) !== serverNameExtension) continue;
    // Two of them, or two names in one, would let two readers of this ClientHello see two names.
    if (found !== undefined) return other;
    found = readServerNames(content);
    if (found === undefined) return other;
  }
  return { kind: 'hello', serverName: found?.name };
}

function readServerNames(content: Uint8Array): { readonly name: string | undefined } | undefined {
  const outer = createReader(content);
  const list = outer.vector(2);
  if (list === undefined || list.length === 0 || outer.left() !== 0) return undefined;
  const names = createReader(list);
  let name: Uint8Array | undefined;
  while (names.left() > 0) {
    const type = names.take(1);
    const value = names.vector(2);
    if (type === undefined || value === undefined || value.length === 0) return undefined;
    if (type[0] !== hostName) continue;
    if (name !== undefined) return undefined;
    name = value;
  }
  return { name: name && readName(name) };
}

const namePattern = /^(?=.{1,253}$)[a-z0-9_-]+(\.[a-z0-9_-]+)*$/;

/** A name that is none matches no rule, like no name. */
function readName(bytes: Uint8Array): string | undefined {
  const name = Buffer.from(bytes).toString('latin1').toLowerCase().replace(/\.$/, '');
  return namePattern.test(name) ? name : undefined;
}
