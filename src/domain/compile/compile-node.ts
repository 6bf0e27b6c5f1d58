/**
 * Compiles the whole configuration of one node from the fleet, with placeholders for secrets. What a resource adds is in its
 * declaration. Implements `docs/contract/wire.md#configuration`, which also fixes the order of rules.
 */
import type { Fleet } from '../fleet/fleet.js';
import { resourceOfType } from '../fleet/resources.js';
import type { AnyResource, AnyState } from '../fleet/resources.js';
import { splitOwner } from '../references/references.js';
import { effectiveMultiplex, settingsOf } from '../settings/settings.js';
import type { NodeSnapshot, TcpProxyRule, UdpRule, UpstreamCluster } from '../snapshot/snapshot.js';

const compareText = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

/** By listen port, address as text, then rule id. */
function byListener(a: TcpProxyRule | UdpRule, b: TcpProxyRule | UdpRule): number {
  return (
    a.listen_port - b.listen_port || compareText(a.listen_addr, b.listen_addr) || compareText(a.rule_id, b.rule_id)
  );
}

/** The resources that may have rules on a node. */
export function* contributorsOf(
  fleet: Fleet,
  nodeId: string,
): Generator<{ readonly compiled: NonNullable<AnyResource['compiled']>; readonly state: AnyState }> {
  for (const owner of fleet.contributors.get(nodeId)) {
    const { type, id } = splitOwner(owner);
    const compiled = resourceOfType(type)?.compiled;
    const state = fleet.get<AnyState>({ type }, id);
    if (compiled !== undefined && compiled !== null && state !== undefined) yield { compiled, state };
  }
}

/** The snapshot of a node. An unknown node has generation 0 and no rules. */
export function compileNode(fleet: Fleet, nodeId: string): NodeSnapshot {
  const tcp: TcpProxyRule[] = [];
  const udp: UdpRule[] = [];
  const clusters = new Map<string, UpstreamCluster>();
  for (const { compiled, state } of contributorsOf(fleet, nodeId)) {
    const rules = compiled.rulesOn(fleet, state, nodeId);
    tcp.push(...rules.tcp);
    udp.push(...rules.udp);
    for (const cluster of rules.clusters) clusters.set(cluster.name, cluster);
  }
  const { multiplex, multiplex_port } = effectiveMultiplex(settingsOf(fleet), nodeId);
  return {
    node_id: nodeId,
    generation: fleet.generationOf(nodeId) ?? 0,
    upstream_clusters: [...clusters.values()].sort((a, b) => compareText(a.name, b.name)),
    tcp_proxy_rules: tcp.sort(byListener),
    udp_rules: udp.sort(byListener),
    node: { multiplex, multiplex_port: multiplex_port ?? 0 },
  };
}
