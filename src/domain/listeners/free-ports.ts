/** Offers ports of a node that no listener claims. Implements `docs/contract/console.md#pages`, chains. */
import type { ListenerView } from './collisions.js';

/** How many ports are offered. */
const offered = 8;
/** The ports that clients expect come first. */
const usual = [443, 8443, 80, 8080];
/** All others are below the ephemeral ports. */
const firstOther = 10_000;
const lastOther = 32_767;

/** The usual ports first, then others by number. */
export function freePorts(view: ListenerView, nodeId: string, transport: 'tcp' | 'udp'): readonly number[] {
  const multiplexed = transport === 'tcp' ? view.multiplexPortOf(nodeId) : null;
  const isFree = (port: number): boolean =>
    port !== multiplexed && view.claims.addresses(nodeId, transport, port).size === 0;
  const free = usual.filter(isFree);
  for (let port = firstOther; free.length < offered && port <= lastOther; port += 1) {
    if (isFree(port)) free.push(port);
  }
  return free;
}
