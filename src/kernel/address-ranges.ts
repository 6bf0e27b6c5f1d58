/** A set of address ranges, from CIDRs: asked whether a peer is one of the proxies or balancers. It parses no settings. */
import { BlockList, isIPv6 } from 'node:net';

/** @param cidrs valid ones, such as `10.0.0.0/8` or `2001:db8::1`. @returns whether an address is in one of them */
export function addressRanges(cidrs: readonly string[]): (address: string) => boolean {
  const family = (address: string): 'ipv4' | 'ipv6' => (isIPv6(address) ? 'ipv6' : 'ipv4');
  const ranges = new BlockList();
  for (const cidr of cidrs) {
    const [address = '', bits] = cidr.split('/');
    if (bits === undefined) ranges.addAddress(address, family(address));
    else ranges.addSubnet(address, Number(bits), family(address));
  }
  return (address) => cidrs.length > 0 && address !== '' && ranges.check(address, family(address));
}
