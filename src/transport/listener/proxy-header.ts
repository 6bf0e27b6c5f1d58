/**
 * Reads the header with which a TCP balancer says on whose behalf it connects: PROXY protocol, version 2, of the HAProxy
 * project ("The PROXY protocol", section 2.2). Pure. Whether a header is expected is decided in `sniff.ts`. Version 1, which
 * is text, is not read. Implements `docs/contract/agent-protocol.md#the-listener`.
 */
import { plainIp } from '../../kernel/addresses.js';
import { unreachable } from '../../kernel/errors.js';

/** @internal exported for tests */
export const proxySignature: Uint8Array = Buffer.from('\r\n\r\n\0\r\nQUIT\n', 'latin1');

/** Signature, version and command, family, length of the rest. */
const fixedBytes = 16;
const addressBytes = { ipv4: 12, ipv6: 36 };
/**
 * The longest header that is read, in bytes. Addresses take 36; balancers add a unique id, a server name or TLS facts, a
 * few hundred bytes in all.
 * @internal exported for tests
 */
export const proxyHeaderMaxBytes = 2048;

type ProxyHeader =
  /** A valid beginning: more bytes are needed. */
  | { readonly kind: 'incomplete' }
  | { readonly kind: 'malformed' }
  | {
      readonly kind: 'complete';
      /** Of the whole header, in bytes. */
      readonly length: number;
      /** The client's address; undefined: the balancer speaks for itself (LOCAL), or does not know it (UNSPEC). */
      readonly client: string | undefined;
    };

type Family = 'none' | 'ipv4' | 'ipv6';

const incomplete: ProxyHeader = { kind: 'incomplete' };
const malformed: ProxyHeader = { kind: 'malformed' };

/** Judges all bytes received so far; what follows the header is not looked at. A wrong byte is noticed when it arrives. */
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
  // With LOCAL the family means nothing.
  const family = local ? 'none' : familyOf(familyByte);
  if (family === undefined) return malformed;
  if (high === undefined || low === undefined) return incomplete;
  const rest = high * 256 + low;
  if (fixedBytes + rest > proxyHeaderMaxBytes || rest < bytesOf(family)) return malformed;
  if (bytes.length < fixedBytes + rest) return incomplete;
  return { kind: 'complete', length: fixedBytes + rest, client: clientOf(family, bytes.subarray(fixedBytes)) };
}

/** A family byte of a connection over TCP, or UNSPEC. Datagrams and UNIX sockets do not lead to this listener. */
function familyOf(byte: number): Family | undefined {
  if (byte === 0x00) return 'none';
  if (byte === 0x11) return 'ipv4';
  return byte === 0x21 ? 'ipv6' : undefined;
}

function bytesOf(family: Family): number {
  return family === 'none' ? 0 : addressBytes[family];
}

/** The source address is the first of the addresses; what follows them are extensions, and are skipped. */
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
