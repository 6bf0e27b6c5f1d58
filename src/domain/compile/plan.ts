/**
 * The plan of a deploy: the deploy is applied to a draft of the fleet. Implements `docs/contract/rest.md#l4-chains`,
 * plan.
 */
import { jsonEqual } from '../../kernel/json.js';
import { chainKey, nodesOf } from '../chain/chain.js';
import { chainCollisions, deployEvent } from '../chain/decide.js';
import { applyCommand } from '../fleet/apply.js';
import type { Fleet } from '../fleet/fleet.js';
import { draftFleet } from '../fleet/fleet.js';
import { hypothetical } from '../fleet/hypothetical.js';
import { compileNode } from './compile-node.js';
import type { NodeSnapshot } from '../snapshot/snapshot.js';

export interface DeployPlan {
  readonly nodes: readonly {
    readonly node_id: string;
    readonly added: readonly string[];
    readonly changed: readonly string[];
    readonly removed: readonly string[];
  }[];
  readonly collisions: readonly string[];
}

/** The plan of deploying a chain's current definition; undefined for an unknown chain. Leaves the fleet unchanged. */
export function planDeploy(fleet: Fleet, chainId: string): DeployPlan | undefined {
  const chain = fleet.get(chainKey, chainId);
  if (chain === undefined) return undefined;
  const nodeIds = nodesOf(chain.deployed, chain);
  const before = nodeIds.map((id) => compileNode(fleet, id));
  const { state: deployed } = draftFleet(fleet);
  applyCommand(deployed, hypothetical(deployed, [deployEvent(fleet, chain)]));
  const nodes = before.map((old) => ({
    node_id: old.node_id,
    ...snapshotDifference(old, compileNode(deployed, old.node_id)),
  }));
  return {
    nodes: nodes.filter(({ added, changed, removed }) => added.length + changed.length + removed.length > 0),
    collisions: chainCollisions(deployed, chain),
  };
}

/** Ids of added, changed and removed rules. A rule counts as changed when its upstream cluster or certificate changes. */
export function snapshotDifference(
  before: NodeSnapshot,
  after: NodeSnapshot,
): { readonly added: readonly string[]; readonly changed: readonly string[]; readonly removed: readonly string[] } {
  const old = rulesOf(before);
  const next = rulesOf(after);
  return {
    added: [...next.keys()].filter((id) => !old.has(id)),
    changed: [...next.keys()].filter((id) => old.has(id) && !jsonEqual(old.get(id), next.get(id))),
    removed: [...old.keys()].filter((id) => !next.has(id)),
  };
}

function rulesOf(snapshot: NodeSnapshot): ReadonlyMap<string, unknown> {
  const clusters = new Map(snapshot.upstream_clusters.map((cluster) => [cluster.name, cluster]));
  const certificates = new Map(snapshot.tls_certificates.map((one) => [one.credential_id, one]));
  const proxies = [...snapshot.tcp_proxy_rules, ...snapshot.quic_rules, ...snapshot.udp_rules].map((rule) => {
    const { next } = rule.outbound;
    const cluster = next.kind === 'upstream_cluster' ? clusters.get(next.name) : undefined;
    const certificate = 'tls_credential_id' in rule ? certificates.get(rule.tls_credential_id) : undefined;
    return [rule.rule_id, { rule, cluster, certificate }] as const;
  });
  const routes = snapshot.http_proxy_rules.map(
    (rule) => [rule.rule_id, { rule, cluster: clusters.get(rule.upstream_cluster) }] as const,
  );
  return new Map<string, unknown>([
    ...proxies,
    ...routes,
    ...snapshot.l3_rules.map((rule) => [rule.rule_id, rule] as const),
  ]);
}
