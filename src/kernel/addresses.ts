/**
 * The canonical form of addresses: IP literals (IPv6 by RFC 5952), DNS names, `host:port`. Any valid notation is read.
 * It resolves nothing; the overlap of listeners is in `src/domain/listeners/claims.ts`. Implements
 * `docs/contract/rest.md#envelope`.
 */
import { isIPv4, isIPv6 } from 'node:net';
import { formatHostPort, isPort, splitHostPort } from './host-port.js';

const label = /^[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?$/;
const nameChars = 253;

/** The canonical text of an IPv4 or IPv6 literal, or undefined. Zones (`%eth0`) and IPv4 octal forms are refused. */
export function canonicalIp(text: string): string | undefined {
  if (isIPv4(text)) return text;
  return isIPv6(text) && !text.includes('%') ? canonicalIpv6(text) : undefined;
}

/** The canonical text of a literal, an IPv4-mapped IPv6 address as the IPv4 address that it stands for; else the text itself. */
export function plainIp(text: string): string {
  const canonical = canonicalIp(text);
  if (canonical === undefined || isIPv4(canonical)) return canonical ?? text;
  return mappedIpv4(ipv6Groups(canonical)) ?? canonical;
}

/** A DNS name in lower case, or undefined. A name whose last label is a number would be read as an address. */
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

/** An IP literal or a DNS name, canonical, or undefined. IPv6 without brackets. */
export function canonicalHost(text: string): string | undefined {
  return canonicalIp(text) ?? canonicalDnsName(text);
}

/** `host:port` with IPv6 in brackets, canonical, or undefined. Ports are 1..65535 without leading zeros. */
export function canonicalEndpoint(text: string): string | undefined {
  const parts = splitHostPort(text);
  if (parts === undefined || parts.port.startsWith('0') || !isPort(Number(parts.port))) return undefined;
  if (parts.bracketed !== isIPv6(parts.host)) return undefined;
  const host = canonicalHost(parts.host);
  return host === undefined ? undefined : formatHostPort({ host, port: Number(parts.port) });
}

/**
 * False for an address that means the dialling machine itself or its link, and for what is no address: loopback,
 * unspecified, link-local and multicast ones, IPv4-mapped ones included.
 */
export function isDialableIp(text: string): boolean {
  if (isIPv4(text)) return isDialableIpv4(text);
  // A zone belongs to a link.
  if (!isIPv6(text) || text.includes('%')) return false;
  const groups = ipv6Groups(text);
  const mapped = mappedIpv4(groups);
  if (mapped !== undefined) return isDialableIpv4(mapped);
  const [first = 0] = groups;
  const unspecifiedOrLoopback = groups.slice(0, 7).every((group) => group === 0) && (groups[7] ?? 0) <= 1;
  return !unspecifiedOrLoopback && (first & 0xffc0) !== 0xfe80 && (first & 0xff00) !== 0xff00;
}

function isDialableIpv4(text: string): boolean {
  const [first = 0, second = 0] = text.split('.').map(Number);
  const linkLocal = first === 169 && second === 254;
  const multicast = first >= 224 && first < 240;
  return first !== 0 && first !== 127 && !linkLocal && !multicast;
}

function canonicalIpv6(text: string): string {
  const groups = ipv6Groups(text);
  // IPv4-mapped addresses keep their dotted half (RFC 5952, section 5).
  const mapped = mappedIpv4(groups);
  if (mapped !== undefined) return `::ffff:${mapped}`;
  const gap = longestZeroRun(groups);
  const hex = (part: readonly number[]): string => part.map((group) => group.toString(16)).join(':');
  if (gap.length < 2) return hex(groups);
  return `${hex(groups.slice(0, gap.start))}::${hex(groups.slice(gap.start + gap.length))}`;
}

/** The IPv4 address of an IPv4-mapped IPv6 address, or undefined. */
export function mappedIpv4(groups: readonly number[]): string | undefined {
  if (!groups.slice(0, 5).every((group) => group === 0) || groups[5] !== 0xffff) return undefined;
  const [high = 0, low = 0] = groups.slice(6);
  return `${high >> 8}.${high & 255}.${low >> 8}.${low & 255}`;
}

/** The eight groups of a literal that `isIPv6` has accepted, without a zone. */
export function ipv6Groups(text: string): readonly number[] {
  const dotted = /^(.*:)(\d+)\.(\d+)\.(\d+)\.(\d+)$/.exec(text);
  const plain =
    dotted === null
      ? text
      : `${dotted[1]}${pair(Number(dotted[2]), Number(dotted[3]))}:${pair(Number(dotted[4]), Number(dotted[5]))}`;
  const [head = '', tail] = plain.split('::');
  const read = (part: string): number[] =>
    part === '' ? [] : part.split(':').map((group) => Number.parseInt(group, 16));
  const before = read(head);
  if (tail === undefined) return before;
  const after = read(tail);
  return [...before, ...Array.from({ length: 8 - before.length - after.length }, () => 0), ...after];
}

function pair(high: number, low: number): string {
  return ((high << 8) | low).toString(16);
}

/** The first of the longest runs of zero groups (RFC 5952, section 4.2.3). */
function longestZeroRun(groups: readonly number[]): { readonly start: number; readonly length: number } {
  let best = { start: 0, length: 0 };
  let start = 0;
  for (let index = 0; index <= groups.length; index += 1) {
    if (groups[index] === 0) continue;
    if (index - start > best.length) best = { start, length: index - start };
    start = index + 1;
  }
  return best;
}
