/**
 * An L3 network: nodes joined by tunnels that carry IP packets. It is live once saved, without a deploy. Definition and
 * requests. Implements `docs/contract/domain.md#l3-network`.
 */
import type { ResourceKey } from '../resource/fleet-view.js';
import type { IfMatch } from '../resource/refusal.js';
import type { PartialUpdate } from '../resource/lifecycle.js';
import type { ResourceMeta } from '../resource/meta.js';
import { getOrMake } from '../../kernel/maps.js';

/** A member as operators send it. */
export interface RequestedMember {
  readonly node_id: string;
  /** `svc<network_id>` when absent. */
  readonly interface_name?: string;
  /** The addresses of the interface: canonical CIDRs with host bits. */
  readonly addresses: readonly string[];
  /** Canonical CIDRs of networks behind the member. */
  readonly routes: readonly string[];
  readonly features?: readonly string[];
}

export interface Member extends RequestedMember {
  readonly interface_name: string;
}

/** A tunnel as operators send it. */
export interface RequestedTunnel {
  readonly listener_node_id: string;
  /** An IP literal in canonical form. */
  readonly listen_addr: string;
  readonly listen_port: number;
  readonly connector_node_id: string;
  /** Assigned when absent. */
  readonly context_id?: number;
}

export interface Tunnel extends RequestedTunnel {
  readonly context_id: number;
}

interface Settings {
  readonly name: string;
  readonly enabled: boolean;
  readonly mtu: number;
  /** A credential of type reality. */
  readonly credential_id: string;
  /** One of the credential's names. */
  readonly server_name: string;
}

/** A network as operators send it, without its number. */
export interface RequestedNetwork extends Settings {
  readonly members: readonly RequestedMember[];
  readonly tunnels: readonly RequestedTunnel[];
}

export interface NetworkDefinition extends Settings {
  readonly network_id: number;
  readonly members: readonly Member[];
  readonly tunnels: readonly Tunnel[];
}

export interface NetworkState extends ResourceMeta, NetworkDefinition {}

/** The commands as operators send them, before numbers, interface names and context ids are assigned. */
export type NetworkRequest =
  | ({ readonly type: 'CreateL3Network'; readonly id: string } & RequestedNetwork)
  | ({
      readonly type: 'UpdateL3Network';
      readonly id: string;
      readonly ifMatch: IfMatch;
    } & PartialUpdate<RequestedNetwork>);

export const networkKey: ResourceKey<NetworkState> = { type: 'l3_network' };

/**
 * A list by node, computed once per list, so that compiling every node of a large network does not read its lists each
 * time.
 */
function byNode<T>(nodesOf: (entry: T) => readonly string[]): (list: readonly T[], nodeId: string) => readonly T[] {
  const known = new WeakMap<readonly T[], ReadonlyMap<string, readonly T[]>>();
  const grouped = (list: readonly T[]): ReadonlyMap<string, readonly T[]> => {
    const groups = new Map<string, T[]>();
    for (const entry of list) {
      for (const nodeId of nodesOf(entry)) getOrMake(groups, nodeId, () => []).push(entry);
    }
    known.set(list, groups);
    return groups;
  };
  return (list, nodeId) => (known.get(list) ?? grouped(list)).get(nodeId) ?? [];
}

const membersByNode = byNode<Member>(({ node_id }) => [node_id]);
const tunnelsByNode = byNode<Tunnel>((tunnel) => [tunnel.listener_node_id, tunnel.connector_node_id]);

/** The member on a node. */
export function memberOn({ members }: Pick<NetworkDefinition, 'members'>, nodeId: string): Member | undefined {
  return membersByNode(members, nodeId)[0];
}

/** The tunnels with an end on a node, in order. */
export function tunnelsOn({ tunnels }: Pick<NetworkDefinition, 'tunnels'>, nodeId: string): readonly Tunnel[] {
  return tunnelsByNode(tunnels, nodeId);
}

/** Ids of the nodes at the ends of tunnels, each once. */
export function nodesOfTunnels({ tunnels }: Pick<NetworkDefinition, 'tunnels'>): readonly string[] {
  return [...new Set(tunnels.flatMap((tunnel) => [tunnel.listener_node_id, tunnel.connector_node_id]))];
}
