/**
 * The rules that hops of chains and of routes share: each is on a node of its own, which the previous hop can dial.
 * Implements `docs/contract/domain.md#l4-chain`.
 */
import { formatHostPort } from '../../kernel/host-port.js';
import type { FleetView } from '../resource/fleet-view.js';
import type { Refusal } from '../resource/refusal.js';
import { dialAddress, nodeKey } from './node.js';

interface AnyHop {
  readonly node_id: string;
  readonly listen_port: number;
  /** The host or IP that the previous hop dials instead of the node's address. */
  readonly dial_addr?: string;
}

/** The hops that repeat the node of an earlier hop. */
export function* repeatedNodes(
  hops: readonly Pick<AnyHop, 'node_id'>[],
): Generator<{ readonly index: number; readonly earlier: number }> {
  const indexes = new Map<string, number>();
  for (const [index, { node_id }] of hops.entries()) {
    const earlier = indexes.get(node_id);
    if (earlier !== undefined) yield { index, earlier };
    indexes.set(node_id, index);
  }
}

/** The hop after the one on a node; undefined after the last one, and for a node without a hop. */
export function hopAfter<H extends Pick<AnyHop, 'node_id'>>(hops: readonly H[], nodeId: string): H | undefined {
  const index = hops.findIndex((hop) => hop.node_id === nodeId);
  return index === -1 ? undefined : hops[index + 1];
}

/** The hop after the one of a rule, whose id ends with its index. */
export function hopAfterRule<H>(hops: readonly H[] | undefined, ruleId: string): H | undefined {
  return hops?.[Number(ruleId.slice(ruleId.lastIndexOf('/') + 1)) + 1];
}

/** The `host:port` that the previous hop dials; `""` while no address is known. */
export function dialEndpoint(fleet: Pick<FleetView, 'get'>, hop: AnyHop): string {
  const node = fleet.get(nodeKey, hop.node_id);
  const host = hop.dial_addr ?? (node === undefined ? null : dialAddress(node));
  return host === null ? '' : formatHostPort({ host, port: hop.listen_port });
}

/** The refusal of hops that the previous hop cannot dial. @param remedy what a user may set to give the node an address */
export function undialable(fleet: FleetView, hops: readonly AnyHop[], remedy: string): Refusal | undefined {
  for (const [index, hop] of hops.entries()) {
    const node = fleet.get(nodeKey, hop.node_id);
    if (index === 0 || node === undefined || dialEndpoint(fleet, hop) !== '') continue;
    return {
      code: 'conflict',
      message:
        `hops[${index}].node_id: the node "${node.name}" has no known address for the hop before it to dial; ` +
        `set ${remedy}, or let its agent report one`,
    };
  }
  return undefined;
}
