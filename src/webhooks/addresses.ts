/**
 * Which addresses a webhook may be sent to: global unicast according to IANA, and those that the operator allows. Pure; `send.ts`
 * looks up names. Implements `docs/contract/automation.md#webhooks`, `url`.
 */
import { isIP, isIPv4 } from 'node:net';
import ipaddr from 'ipaddr.js';
import { canonicalIp } from '../kernel/addresses.js';
import { addressRanges } from '../kernel/cidr.js';

/** Everything that IANA has assigned as global unicast. */
const globalUnicast = addressRanges(['2000::/3']);
/** IPv6 blocks that embed an IPv4 address, with the index of its first byte. */
const embedding = [
  { contains: addressRanges(['::/96']), at: 12 },
  { contains: addressRanges(['64:ff9b::/96']), at: 12 },
  { contains: addressRanges(['2002::/16']), at: 2 },
];

/** The embedded IPv4 address, or else the address itself in canonical form; undefined if it is not an address. */
function judgedForm(text: string): string | undefined {
  const address = canonicalIp(text.split('%', 1)[0] ?? '');
  if (address === undefined) return undefined;
  const at = embedding.find(({ contains }) => contains(address))?.at;
  if (at === undefined) return address;
  return ipaddr
    .parse(address)
    .toByteArray()
    .slice(at, at + 4)
    .join('.');
}

/** @param allow CIDRs that are always allowed @returns whether an address may be dialled */
export function addressJudge(allow: readonly string[]): (address: string) => boolean {
  const allowed = addressRanges(allow);
  return (address) => {
    const judged = judgedForm(address);
    if (judged === undefined) return false;
    if (allowed(judged) || allowed(address)) return true;
    // `range` also excludes anycast services of the network, which receive no webhooks.
    return ipaddr.parse(judged).range() === 'unicast' && (isIPv4(judged) || globalUnicast(judged));
  };
}

/** The host of a URL as an address; undefined for a name. */
export function literalIn(url: URL): string | undefined {
  const host = url.hostname.replace(/^\[|\]$/g, '');
  return isIP(host) === 0 ? undefined : host;
}
