/** The address that clients of a chain use: that of its first hop, as far as it is known. Pure. */
import type { Schemas } from '../shared/api/client.js';
import { formatAddress } from '../shared/ui/format.js';
import type { Hop } from './chains.js';

type Machine = Pick<Schemas['Node'], 'address' | 'public_ipv4' | 'public_ipv6'>;

const isLoopback = (address: string): boolean => address.startsWith('127.') || address === '::1';
const isWildcard = (address: string): boolean => address === '0.0.0.0' || address === '::';

/** @returns undefined where nothing tells how the machine is reached */
export function clientAddressOf(
  hop: Hop,
  { address, public_ipv4: ipv4, public_ipv6: ipv6 }: Machine,
): string | undefined {
  const { listen_addr: listens, listen_port: port } = hop;
  // Only the machine itself reaches a loopback address.
  if (isLoopback(listens)) return formatAddress(listens, port);
  const host = hop.dial_addr ?? address ?? ipv4 ?? ipv6 ?? (isWildcard(listens) ? undefined : listens);
  return host === undefined ? undefined : formatAddress(host, port);
}
