/**
 * One node's whole configuration from the fleet: pure, deterministic, with placeholders where secrets go.
 * The order of rules is part of the contract (`docs/contract/wire.md#configuration`).
 */
import { generationOf } from '../fleet/fleet.js';
import type { Fleet } from '../fleet/fleet.js';
import { effectiveMultiplex } from '../settings/settings.js';
import { chainRulesOn } from './chain-rules.js';
import type { NodeSnapshot, TcpProxyRule, UdpRule, UpstreamCluster } from '../snapshot/snapshot.js';

const compareText = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

/** By listen port, address as text, then rule id. */
function byListener(a: TcpProxyRule | UdpRule, b: TcpProxyRule | UdpRule): number {
  return (
    a.listen_port - b.listen_port || compareText(a.listen_addr, b.listen_addr) || compareText(a.rule_id, b.rule_id)
  );
}

/** The snapshot of a node. An unknown node has generation 0 and no rules. */
export function compileNode(fleet: Fleet, nodeId: string): NodeSnapshot {
  const tcp: TcpProxyRule[] = [];
  const udp: UdpRule[] = [];
  const clusters = new Map<string, UpstreamCluster>();
  for (const chainId of fleet.deployedOn.get(nodeId)) {
    const chain = fleet.chains.get(chainId);
    if (chain === undefined) continue;
    const rules = chainRulesOn(fleet, chain, nodeId);
    tcp.push(...rules.tcp);
    udp.push(...rules.udp);
    for (const cluster of rules.clusters) clusters.set(cluster.name, cluster);
  }
  const { multiplex, multiplex_port } = effectiveMultiplex(fleet.settings.value, nodeId);
  return {
    node_id: nodeId,
    generation: generationOf(fleet, nodeId) ?? 0,
    upstream_clusters: [...clusters.values()].sort((a, b) => compareText(a.name, b.name)),
    tcp_proxy_rules: tcp.sort(byListener),
    udp_rules: udp.sort(byListener),
    node: { multiplex, multiplex_port: multiplex_port ?? 0 },
  };
}
