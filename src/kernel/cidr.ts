/**
 * Address ranges: parsing, canonical text, overlap, membership. IPv4 and IPv6 never overlap; a range within
 * `::ffff:0:0/96` becomes its IPv4 range. Implements `docs/contract/domain.md#listeners-and-collisions` and
 * `docs/contract/domain.md#l3-network`.
 */
import { BlockList, isIPv4, isIPv6 } from 'node:net';
import ipaddr from 'ipaddr.js';
import { canonicalIp } from './addresses.js';

/** An address with a prefix length. Host bits may be set. */
export interface Cidr {
  readonly family: 4 | 6;
  /** The canonical text of the address, without the prefix length. */
  readonly address: string;
  /** The address as a 32- or 128-bit number. */
  readonly value: bigint;
  /** The prefix length: 0..32 or 0..128. */
  readonly bits: number;
}

const widths = { 4: 32, 6: 128 } as const;

/** Parses `address/bits` with the address in any notation; undefined for anything else. */
export function parseCidr(text: string): Cidr | undefined {
  const [, literal = '', prefix = ''] = /^([^/]+)\/(0|[1-9][0-9]{0,2})$/.exec(text) ?? [];
  const address = canonicalIp(literal);
  if (address === undefined) return undefined;
  const family = isIPv4(address) ? 4 : 6;
  const isMapped = family === 4 && isIPv6(literal);
  const bits = Number(prefix) - (isMapped ? widths[6] - widths[4] : 0);
  if (bits < 0 || bits > widths[family]) return undefined;
  const value = BigInt(`0x${Buffer.from(ipaddr.parse(address).toByteArray()).toString('hex')}`);
  return { family, address, value, bits };
}

/** The mask of the host bits. */
function hostMask({ family, bits }: Pick<Cidr, 'family' | 'bits'>): bigint {
  return (1n << BigInt(widths[family] - bits)) - 1n;
}

/** The canonical text of an address with its prefix length, or undefined. */
export function canonicalCidr(text: string): string | undefined {
  const cidr = parseCidr(text);
  return cidr === undefined ? undefined : `${cidr.address}/${cidr.bits}`;
}

/** The canonical text of a network; undefined if host bits are set or the text is anything else. */
export function canonicalNetwork(text: string): string | undefined {
  const cidr = parseCidr(text);
  if (cidr === undefined || (cidr.value & hostMask(cidr)) !== 0n) return undefined;
  return `${cidr.address}/${cidr.bits}`;
}

/** The canonical text of an address, or of a network with its host bits cleared; undefined for anything else. */
export function canonicalRange(text: string): string | undefined {
  if (!text.includes('/')) return canonicalIp(text);
  const cidr = parseCidr(text);
  if (cidr === undefined) return undefined;
  const { family, address, bits } = cidr;
  const reader = family === 4 ? ipaddr.IPv4 : ipaddr.IPv6;
  return `${canonicalIp(reader.networkAddressFromCIDR(`${address}/${bits}`).toString())}/${bits}`;
}

/**
 * A set of ranges, such as the proxies or balancers of an installation.
 * @param ranges CIDRs or addresses, such as `10.0.0.0/8` or `2001:db8::1`; anything else is ignored
 * @returns whether an address is in one of them, by family: `::/0` holds no IPv4 address, in whatever notation
 */
export function addressRanges(ranges: readonly string[]): (address: string) => boolean {
  // A single list would also match IPv4 addresses against IPv6 ranges.
  const lists = { ipv4: new BlockList(), ipv6: new BlockList() };
  const familyOf = (address: string): keyof typeof lists => (isIPv4(address) ? 'ipv4' : 'ipv6');
  for (const range of ranges) {
    const [address = '', bits] = canonicalRange(range)?.split('/') ?? [];
    if (address === '') continue;
    const family = familyOf(address);
    if (bits === undefined) lists[family].addAddress(address, family);
    else lists[family].addSubnet(address, Number(bits), family);
  }
  return (text) => {
    const address = canonicalIp(text.split('%', 1)[0] ?? '');
    if (address === undefined) return false;
    const family = familyOf(address);
    return lists[family].check(address, family);
  };
}

/** The CIDR that holds this address alone. */
export function hostOf(cidr: Cidr): Cidr {
  return { ...cidr, bits: widths[cidr.family] };
}

export function formatCidr({ address, bits }: Cidr): string {
  return `${address}/${bits}`;
}

/** Whether a CIDR is a default route. */
export function isDefaultRoute({ bits }: Cidr): boolean {
  return bits === 0;
}

/** The first and last address of a CIDR. */
function span(cidr: Cidr): { readonly first: bigint; readonly last: bigint } {
  const mask = hostMask(cidr);
  return { first: cidr.value & ~mask, last: cidr.value | mask };
}

/** Whether two CIDRs have an address in common. */
export function overlap(a: Cidr, b: Cidr): boolean {
  const [one, other] = [span(a), span(b)];
  return a.family === b.family && one.first <= other.last && other.first <= one.last;
}

/** By family, then by first address, wider before narrower. */
function byStart(a: Spanned<unknown>, b: Spanned<unknown>): number {
  if (a.cidr.family !== b.cidr.family) return a.cidr.family - b.cidr.family;
  if (a.first !== b.first) return a.first < b.first ? -1 : 1;
  return a.cidr.bits - b.cidr.bits;
}

interface Spanned<T> {
  readonly entry: T;
  readonly cidr: Cidr;
  readonly first: bigint;
  readonly last: bigint;
}

/**
 * Finds two overlapping entries of different groups, in the time of a sort.
 * @returns the pair; undefined when entries overlap only within their group
 */
export function overlappingPair<T extends { readonly cidr: Cidr; readonly group: number }>(
  entries: readonly T[],
): readonly [T, T] | undefined {
  const sorted = entries.map((entry): Spanned<T> => ({ entry, cidr: entry.cidr, ...span(entry.cidr) })).sort(byStart);
  // CIDRs are nested or disjoint, so the ones that contain the current one form a stack, all of one group.
  const around: Spanned<T>[] = [];
  for (const next of sorted) {
    for (let top = around.at(-1); top !== undefined && !contains(top, next); top = around.at(-1)) around.pop();
    const top = around.at(-1);
    if (top !== undefined && top.entry.group !== next.entry.group) return [top.entry, next.entry];
    around.push(next);
  }
  return undefined;
}

/** Whether an entry contains one that follows it in that order. */
function contains(earlier: Spanned<unknown>, later: Spanned<unknown>): boolean {
  return earlier.cidr.family === later.cidr.family && later.first <= earlier.last;
}
