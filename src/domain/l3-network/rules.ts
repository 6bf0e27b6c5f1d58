/**
 * The rules that an enabled L3 network adds to the snapshots of nodes, one for each end of a tunnel, and an upper bound of
 * their size. Implements `docs/contract/domain.md#l3-network`, `#scale-the-model-is-built-for` and
 * `docs/contract/wire.md#configuration`.
 */
import { formatHostPort } from '../../kernel/host-port.js';
import { jsonEqual } from '../../kernel/json.js';
import { credentialKey } from '../credential/credential.js';
import { realityInbound, realityOutbound } from '../credential/material.js';
import { dialEndpoint } from '../node/hops.js';
import type { FleetView } from '../resource/fleet-view.js';
import { listBound, ruleBytes, textBound } from '../snapshot/bound.js';
import { noRules, type L3TunnelRule, type NodeRules, type TunConfig } from '../snapshot/snapshot.js';
import { memberOn, nodesOfTunnels, tunnelsOn, type Member, type NetworkState, type Tunnel } from './l3-network.js';

/** The `host:port` that the connector of a tunnel dials; `""` while the listener's address is unknown. */
export function peerEndpoint(fleet: FleetView, { listener_node_id, listen_port }: Tunnel): string {
  return dialEndpoint(fleet, { node_id: listener_node_id, listen_port });
}

/** The rules of a network in a node's snapshot, tunnel by tunnel. */
export function networkRulesOn(fleet: FleetView, network: NetworkState, nodeId: string): NodeRules {
  if (!network.enabled) return noRules;
  const l3_rules = tunnelsOn(network, nodeId).flatMap((tunnel) => [
    ...(tunnel.listener_node_id === nodeId ? listenerRule(fleet, network, tunnel) : []),
    ...(tunnel.connector_node_id === nodeId ? connectorRule(fleet, network, tunnel) : []),
  ]);
  return { l3_rules };
}

function listenerRule(fleet: FleetView, network: NetworkState, tunnel: Tunnel): readonly L3TunnelRule[] {
  const { listener_node_id: own, connector_node_id: other, listen_addr: host, listen_port: port } = tunnel;
  const common = commonPart(network, tunnel, own, other);
  const inbound = realityInbound(fleet, network.credential_id, [network.server_name]);
  if (common === undefined || inbound === undefined) return [];
  return [
    {
      ...common,
      rule_id: `${network.id}/${tunnel.context_id}/listener`,
      role: 'LISTENER',
      local_endpoint: formatHostPort({ host, port }),
      peer_endpoint: '',
      reality_inbound: inbound,
      reality_outbound: null,
    },
  ];
}

/** No rule while the listener cannot be dialled, because the agent would reject a snapshot with a rule without a peer. */
function connectorRule(fleet: FleetView, network: NetworkState, tunnel: Tunnel): readonly L3TunnelRule[] {
  const common = commonPart(network, tunnel, tunnel.connector_node_id, tunnel.listener_node_id);
  const outbound = realityOutbound(fleet, network.credential_id, network.server_name);
  const peer = peerEndpoint(fleet, tunnel);
  if (common === undefined || outbound === undefined || peer === '') return [];
  return [
    {
      ...common,
      rule_id: `${network.id}/${tunnel.context_id}/connector`,
      role: 'CONNECTOR',
      local_endpoint: '',
      peer_endpoint: peer,
      reality_inbound: null,
      reality_outbound: outbound,
    },
  ];
}

/** The tunnel whose listener a rule dials; undefined for the rule of a listener. */
export function tunnelDialledBy({ tunnels }: NetworkState, ruleId: string): Tunnel | undefined {
  const [, context, role] = ruleId.split('/');
  return role === 'connector' ? tunnels.find(({ context_id }) => String(context_id) === context) : undefined;
}

type CommonPart = Omit<
  L3TunnelRule,
  'rule_id' | 'role' | 'local_endpoint' | 'peer_endpoint' | 'reality_inbound' | 'reality_outbound'
>;

/** The fields that both roles share. No command leads to an end that is not a member. */
function commonPart(network: NetworkState, tunnel: Tunnel, ownNode: string, otherNode: string): CommonPart | undefined {
  const [own, other] = [memberOn(network, ownNode), memberOn(network, otherNode)];
  if (own === undefined || other === undefined) return undefined;
  return {
    origin: { resource_type: 'l3_network', resource_id: network.id, resource_name: network.name, hop_index: 0 },
    network_id: String(network.network_id),
    network_name: network.name,
    routes: other.routes,
    allowed_sources: [...new Set([...other.addresses.map(hostRoute), ...other.routes])],
    tun: tunOf(network, own),
    datagram_context_id: tunnel.context_id,
    transport_profile: { payload: 'IP', outer: 'QUIC', security: 'REALITY' },
  };
}

/** A canonical CIDR with the prefix length of one host. */
function hostRoute(cidr: string): string {
  return `${cidr.slice(0, cidr.indexOf('/'))}/${cidr.includes(':') ? 128 : 32}`;
}

function tunOf({ mtu }: NetworkState, { interface_name, addresses, features = [] }: Member): TunConfig {
  return { interface_name, address_family: familyOf(addresses), prefixes: addresses, mtu, features };
}

function familyOf(addresses: readonly string[]): TunConfig['address_family'] {
  const six = addresses.filter((address) => address.includes(':')).length;
  if (six === 0) return 'IPV4';
  return six === addresses.length ? 'IPV6' : 'DUAL';
}

/**
 * Ids of the nodes whose rules differ between two states of a network; undefined stands for no network. Compares rules rather
 * than fields, so that an edit touches only the nodes that it changes.
 */
export function nodesWithOtherRules(
  fleet: FleetView,
  before: NetworkState | undefined,
  after: NetworkState | undefined,
): readonly string[] {
  const rulesOf = (network: NetworkState | undefined, nodeId: string): readonly L3TunnelRule[] => {
    const rules = network === undefined ? [] : (networkRulesOn(fleet, network, nodeId).l3_rules ?? []);
    return [...rules].sort((a, b) => (a.rule_id < b.rule_id ? -1 : 1));
  };
  const live = [before, after].filter((network) => network?.enabled === true);
  const ends = new Set(live.flatMap((network) => (network === undefined ? [] : nodesOfTunnels(network))));
  return [...ends].filter((nodeId) => !jsonEqual(rulesOf(before, nodeId), rulesOf(after, nodeId)));
}

/** An upper bound of a network's part of a snapshot, in bytes. */
export function networkBound(fleet: FleetView, network: NetworkState, nodeId: string): number {
  const own = memberOn(network, nodeId);
  if (!network.enabled || own === undefined) return 0;
  const credential = fleet.get(credentialKey, network.credential_id);
  const eachRule =
    ruleBytes +
    // In the rule and its origin.
    2 * textBound(network.name) +
    textBound(network.server_name) +
    textBound(credential?.target_host ?? '') +
    listBound(credential?.short_ids) +
    listBound(own.addresses) +
    listBound(own.features);
  let sum = 0;
  for (const { listener_node_id, connector_node_id } of tunnelsOn(network, nodeId)) {
    const other = memberOn(network, listener_node_id === nodeId ? connector_node_id : listener_node_id);
    // The other side's routes are both in `routes` and in `allowed_sources`.
    sum += eachRule + listBound(other?.addresses) + 2 * listBound(other?.routes);
  }
  return sum;
}
