/**
 * Compiles the whole configuration of one node from the fleet, with placeholders for secrets. What a resource adds is in its
 * declaration. Implements `docs/contract/wire.md#configuration`, which also fixes the order of rules.
 */
import type { Fleet } from '../fleet/fleet.js';
import { resourceOfType } from '../fleet/resources.js';
import type { AnyResource, AnyState } from '../fleet/resources.js';
import { splitOwner } from '../references/references.js';
import { effectiveMultiplex, settingsOf } from '../settings/settings.js';
import type { ListenerPolicy, ListenerRule, NodeRules, NodeSnapshot } from '../snapshot/snapshot.js';

const compareText = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

/** By listen port, address as text, then rule id. */
function byListener(a: ListenerRule, b: ListenerRule): number {
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

/** By transport, port, then address as text. */
function byKey(a: ListenerPolicy, b: ListenerPolicy): number {
  return (
    compareText(a.transport, b.transport) || a.listen_port - b.listen_port || compareText(a.listen_addr, b.listen_addr)
  );
}

/** One of several equal entries, in the order of a name. */
function onceEach<T>(entries: readonly T[], nameOf: (entry: T) => string): readonly T[] {
  const byName = new Map(entries.map((entry) => [nameOf(entry), entry]));
  return [...byName.values()].sort((a, b) => compareText(nameOf(a), nameOf(b)));
}

/** The snapshot of a node. An unknown node has generation 0 and no rules. */
export function compileNode(fleet: Fleet, nodeId: string): NodeSnapshot {
  const parts: NodeRules[] = [];
  for (const { compiled, state } of contributorsOf(fleet, nodeId)) parts.push(compiled.rulesOn(fleet, state, nodeId));
  const all = <T>(of: (part: NodeRules) => readonly T[] | undefined): T[] => parts.flatMap((part) => of(part) ?? []);
  const { multiplex, multiplex_port } = effectiveMultiplex(settingsOf(fleet), nodeId);
  return {
    node_id: nodeId,
    generation: fleet.generationOf(nodeId) ?? 0,
    upstream_clusters: onceEach(
      all(({ clusters }) => clusters),
      ({ name }) => name,
    ),
    tcp_proxy_rules: all(({ tcp }) => tcp).sort(byListener),
    http_proxy_rules: all(({ http }) => http).sort(byListener),
    tls_certificates: onceEach(
      all(({ certificates }) => certificates),
      ({ credential_id }) => credential_id,
    ),
    quic_rules: all(({ quic }) => quic).sort(byListener),
    udp_rules: all(({ udp }) => udp).sort(byListener),
    listener_policies: all(({ policies }) => policies).sort(byKey),
    l3_rules: all(({ l3 }) => l3).sort((a, b) => compareText(a.rule_id, b.rule_id)),
    node: { multiplex, multiplex_port: multiplex_port ?? 0 },
  };
}
