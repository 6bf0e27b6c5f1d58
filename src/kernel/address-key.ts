/**
 * The unit in which addresses are counted by budgets: an IPv4 address, or the /64 of an IPv6 address, since one host
 * commands a whole /64. Implements `docs/contract/agent-protocol.md#opensession`, and serves the login limiter alike.
 */
import { isIPv4, isIPv6 } from 'node:net';
import { ipv6Groups, mappedIpv4 } from './addresses.js';

/** Any text that is not an address counts as one address of its own kind: nothing escapes counting. */
export function addressKey(address: string): string {
  const bare = address.split('%', 1)[0] ?? '';
  if (isIPv4(bare)) return bare;
  if (!isIPv6(bare)) return 'unknown';
  const groups = ipv6Groups(bare);
  const hex = groups.slice(0, 4).map((group) => group.toString(16));
  return mappedIpv4(groups) ?? `${hex.join(':')}::/64`;
}
