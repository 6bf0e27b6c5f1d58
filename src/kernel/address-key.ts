/**
 * The unit in which budgets count addresses: an IPv4 address, or the /64 of an IPv6 address, because one host commands a
 * whole /64. Implements `docs/contract/agent-protocol.md#opensession`; the login limiter counts the same way.
 */
import { isIPv4, isIPv6 } from 'node:net';
import { ipv6Groups, mappedIpv4 } from './addresses.js';

/** All text that is not an address shares one key, so that nothing escapes counting. */
export function addressKey(address: string): string {
  const bare = address.split('%', 1)[0] ?? '';
  if (isIPv4(bare)) return bare;
  if (!isIPv6(bare)) return 'unknown';
  const groups = ipv6Groups(bare);
  const hex = groups.slice(0, 4).map((group) => group.toString(16));
  return mappedIpv4(groups) ?? `${hex.join(':')}::/64`;
}
