/**
 * Addresses as text: the canonical form of IP literals (IPv6 by RFC 5952), DNS names and `host:port`, and the key that
 * budgets count addresses by. Reads any valid notation and resolves no name. Ranges are in `cidr.ts`;
 * `src/domain/listeners/claims.ts` decides whether listeners overlap. Implements `docs/contract/rest.md#envelope`.
 */
import { isIPv4, isIPv6 } from 'node:net';
import ipaddr from 'ipaddr.js';
import { formatHostPort, isPort, splitHostPort } from './host-port.js';

const label = /^[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?$/;
const nameChars = 253;

/**
 * The canonical text of an IPv4 or IPv6 literal, or undefined. An IPv4-mapped IPv6 address becomes the IPv4 address.
 * Zones (`%eth0`) and IPv4 octal forms are refused.
 */
export function canonicalIp(text: string): string | undefined {
  if (isIPv4(text)) return text;
  if (!isIPv6(text) || text.includes('%')) return undefined;
  const address = ipaddr.IPv6.parse(withoutDots(text));
  return address.isIPv4MappedAddress() ? address.toIPv4Address().toString() : address.toRFC5952String();
}

/** An IPv6 literal with a dotted end rewritten in hex: the library reads `::1.2.3.4` as if it were IPv4-mapped. */
function withoutDots(text: string): string {
  const hex = (high = '', low = ''): string => ((Number(high) << 8) | Number(low)).toString(16);
  return text.replace(/(\d+)\.(\d+)\.(\d+)\.(\d+)$/, (_, ...[a, b, c, d]: string[]) => `${hex(a, b)}:${hex(c, d)}`);
}

/** The canonical text of a literal; any other text unchanged. */
export function plainIp(text: string): string {
  return canonicalIp(text) ?? text;
}

/** Like `canonicalIp`, for the address of one machine: multicast and broadcast are undefined too. */
export function canonicalUnicastIp(text: string): string | undefined {
  const address = canonicalIp(text);
  if (address === undefined) return undefined;
  return ['multicast', 'broadcast'].includes(ipaddr.parse(address).range()) ? undefined : address;
}

/** A DNS name in lower case, or undefined. A numeric last label is refused: it would be read as an address. */
export function canonicalDnsName(text: string): string | undefined {
  const name = text.toLowerCase();
  if (name.length > nameChars) return undefined;
  const labels = name.split('.');
  if (!labels.every((part) => label.test(part))) return undefined;
  return /^[0-9]+$/.test(labels[labels.length - 1] ?? '') ? undefined : name;
}

/** A DNS name that may start with one wildcard label (`*.a.b`), in lower case, or undefined. */
export function canonicalNamePattern(text: string): string | undefined {
  if (!text.startsWith('*.')) return canonicalDnsName(text);
  const rest = canonicalDnsName(text.slice(2));
  return rest === undefined || rest.length + 2 > nameChars ? undefined : `*.${rest}`;
}

/** A canonical IP literal (IPv6 without brackets) or DNS name, or undefined. */
export function canonicalHost(text: string): string | undefined {
  return canonicalIp(text) ?? canonicalDnsName(text);
}

/** Canonical `host:port` with IPv6 in brackets, or undefined. Ports are 1..65535 without leading zeros. */
export function canonicalEndpoint(text: string): string | undefined {
  const parts = splitHostPort(text);
  if (parts === undefined || parts.port.startsWith('0') || !isPort(Number(parts.port))) return undefined;
  if (parts.bracketed !== isIPv6(parts.host)) return undefined;
  const host = canonicalHost(parts.host);
  return host === undefined ? undefined : formatHostPort({ host, port: Number(parts.port) });
}

const notDialable: readonly string[] = ['loopback', 'unspecified', 'linkLocal', 'multicast'];

/**
 * Whether a node can be dialled at an address. False for loopback, unspecified, link-local and multicast addresses,
 * their IPv4-mapped forms, and any text that is not an address.
 */
export function isDialableIp(text: string): boolean {
  const address = canonicalIp(text);
  // A zone makes an address link-local.
  return address !== undefined && !notDialable.includes(ipaddr.parse(address).range());
}

/**
 * The key that budgets count an address by: an IPv4 address, or the /64 of an IPv6 address, because one host usually
 * controls a whole /64. Text that is not an address shares one key, so that nothing escapes counting.
 */
export function addressKey(address: string): string {
  const plain = plainIp(address.split('%', 1)[0] ?? '');
  if (isIPv4(plain)) return plain;
  if (!isIPv6(plain)) return 'unknown';
  const network = ipaddr.IPv6.parse(plain).parts.slice(0, 4);
  return `${network.map((group) => group.toString(16)).join(':')}::/64`;
}
