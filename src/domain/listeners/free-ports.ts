/**
 * Ports of a node that no listener claims, for people who choose one. Whether a listener may share a port that is claimed
 * is in `collisions.ts`. Implements `docs/contract/console.md#pages`, chains.
 */
import type { ListenerView } from './collisions.js';

/** How many are offered. */
const offered = 8;
/** Offered first: those that clients expect. */
const usual = [443, 8443, 80, 8080];
/** The others begin here, below those that systems give to clients. */
const firstOther = 10_000;
const lastOther = 32_767;

/** The usual ports first, then by number; none where more than 22,000 are taken. */
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
