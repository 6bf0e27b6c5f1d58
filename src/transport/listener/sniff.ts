/**
 * Reads the first bytes of a socket until its protocol is clear: from a balancer the PROXY protocol v2 header, then the
 * preface. Puts back every byte that belongs to the protocol. `listener.ts` decides what follows. Implements
 * `docs/contract/agent-protocol.md#the-listener`.
 */
import type { Socket } from 'node:net';
import { unreachable } from '../../kernel/errors.js';
import { plainIp } from '../../kernel/addresses.js';

/** The preface of HTTP/2 with prior knowledge (RFC 9113, section 3.4). */
export const h2cPreface: Uint8Array = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 'latin1');

type FirstBytes =
  | 'h2c'
  /** The beginning of the preface: more bytes are needed. */
  | 'undecided'
  | 'foreign';

/**
 * Classifies all bytes received so far. No bytes are `undecided`.
 * @internal exported for tests
 */
export function judgeFirstBytes(bytes: Uint8Array): FirstBytes {
  const length = Math.min(bytes.length, h2cPreface.length);
  for (let index = 0; index < length; index += 1) {
    if (bytes[index] !== h2cPreface[index]) return 'foreign';
  }
  return bytes.length >= h2cPreface.length ? 'h2c' : 'undecided';
}

export type Sniffed =
  | {
      /** `other` is any protocol but h2c. Its bytes are unread, as with h2c. */
      readonly kind: 'h2c' | 'other';
      /** The address that a balancer named, if one did. */
      readonly client: string | undefined;
    }
  /** A balancer did not start with a valid PROXY header. */
  | { readonly kind: 'no_proxy_header' }
  /** Ended or failed before the protocol was clear. */
  | { readonly kind: 'gone' };

interface SniffOptions {
  /** The peer is a balancer, so a PROXY header comes first. */
  readonly expectHeader: boolean;
  /** Whether to look for h2c; otherwise everything after the header is `other`, even nothing. */
  readonly lookForH2c: boolean;
}

/**
 * Calls `done` once. There is no timeout: the caller closes the socket or gives up. For `h2c` and `other`, the socket
 * is then paused, with its first bytes and all that follows unread.
 * @returns stops waiting for more bytes and treats the protocol as `other`; has no effect while a header is missing
 */
export function sniff(
  socket: Socket,
  { expectHeader, lookForH2c }: SniffOptions,
  done: (result: Sniffed) => void,
): () => void {
  let bytes: Buffer = Buffer.alloc(0);
  let headerExpected = expectHeader;
  let client: string | undefined;

  /** Removes the header from the bytes. @returns false while bytes are missing, or if it has ended the sniffing */
  const passHeader = (): boolean => {
    const header = readProxyHeader(bytes);
    switch (header.kind) {
      case 'incomplete':
        return false;
      case 'malformed':
        finish({ kind: 'no_proxy_header' });
        return false;
      case 'complete':
        headerExpected = false;
        client = header.client;
        bytes = bytes.subarray(header.length);
        return true;
      default:
        return unreachable(header);
    }
  };
  const read = (chunk: Buffer): void => {
    bytes = bytes.length === 0 ? chunk : Buffer.concat([bytes, chunk]);
    if (headerExpected && !passHeader()) return;
    const protocol = lookForH2c ? judgeFirstBytes(bytes) : 'foreign';
    if (protocol === 'undecided') return;
    handOver(protocol === 'h2c' ? 'h2c' : 'other');
  };
  const handOver = (kind: 'h2c' | 'other'): void => {
    socket.pause();
    socket.off('data', read);
    if (bytes.length > 0) socket.unshift(bytes);
    finish({ kind, client });
  };
  const gone = (): void => finish({ kind: 'gone' });
  let finished = false;
  const finish = (result: Sniffed): void => {
    finished = true;
    socket.off('data', read);
    socket.off('end', gone);
    socket.off('close', gone);
    done(result);
  };
  const giveUp = (): void => {
    if (!finished && !headerExpected) handOver('other');
  };
  if (headerExpected || lookForH2c) {
    socket.on('data', read);
    socket.on('end', gone);
    socket.on('close', gone);
  } else giveUp();
  return giveUp;
}

/** @internal exported for tests */
export const proxySignature: Uint8Array = Buffer.from('\r\n\r\n\0\r\nQUIT\n', 'latin1');

/** Signature, version and command, family, length of the rest. */
const fixedBytes = 16;
const addressBytes = { ipv4: 12, ipv6: 36 };
/**
 * The longest accepted header, in bytes. Addresses take 36; balancers add a unique id, a server name or TLS facts, a
 * few hundred bytes in total.
 * @internal exported for tests
 */
export const proxyHeaderMaxBytes = 2048;

type ProxyHeader =
  /** A valid start: more bytes are needed. */
  | { readonly kind: 'incomplete' }
  | { readonly kind: 'malformed' }
  | {
      readonly kind: 'complete';
      /** Size of the whole header, in bytes. */
      readonly length: number;
      /** The client's address; undefined: the balancer speaks for itself (LOCAL), or does not know it (UNSPEC). */
      readonly client: string | undefined;
    };

type Family = 'none' | 'ipv4' | 'ipv6';

const incomplete: ProxyHeader = { kind: 'incomplete' };
const malformed: ProxyHeader = { kind: 'malformed' };

/**
 * Classifies all bytes received so far; ignores what follows the header. A wrong byte is noticed when it arrives.
 * @internal exported for tests
 */
export function readProxyHeader(bytes: Uint8Array): ProxyHeader {
  const matching = Math.min(bytes.length, proxySignature.length);
  for (let index = 0; index < matching; index += 1) {
    if (bytes[index] !== proxySignature[index]) return malformed;
  }
  const [versionAndCommand, familyByte, high, low] = bytes.subarray(proxySignature.length, fixedBytes);
  if (versionAndCommand === undefined) return incomplete;
  const local = versionAndCommand === 0x20;
  if (!local && versionAndCommand !== 0x21) return malformed;
  if (familyByte === undefined) return incomplete;
  // With LOCAL, the family is meaningless.
  const family = local ? 'none' : familyOf(familyByte);
  if (family === undefined) return malformed;
  if (high === undefined || low === undefined) return incomplete;
  const rest = high * 256 + low;
  if (fixedBytes + rest > proxyHeaderMaxBytes || rest < bytesOf(family)) return malformed;
  if (bytes.length < fixedBytes + rest) return incomplete;
  return { kind: 'complete', length: fixedBytes + rest, client: clientOf(family, bytes.subarray(fixedBytes)) };
}

/** The family byte of a TCP connection, or UNSPEC. Datagrams and UNIX sockets do not lead to this listener. */
function familyOf(byte: number): Family | undefined {
  if (byte === 0x00) return 'none';
  if (byte === 0x11) return 'ipv4';
  return byte === 0x21 ? 'ipv6' : undefined;
}

function bytesOf(family: Family): number {
  return family === 'none' ? 0 : addressBytes[family];
}

/** The source address is the first of the addresses; what follows them are extensions, which are skipped. */
function clientOf(family: Family, addresses: Uint8Array): string | undefined {
  switch (family) {
    case 'none':
      return undefined;
    case 'ipv4':
      return addresses.subarray(0, 4).join('.');
    case 'ipv6':
      return plainIp(
        Buffer.from(addresses.subarray(0, 16))
          .toString('hex')
          .replace(/(.{4})(?!$)/g, '$1:'),
      );
    default:
      return unreachable(family);
  }
}
