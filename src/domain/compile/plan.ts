/** The plan of a deploy, which is tried on a draft of the fleet. Implements `docs/contract/rest.md#l4-chains`, plan. */
import { jsonEqual } from '../../kernel/json.js';
import { chainKey, nodesOf } from '../chain/chain.js';
import { deployEvent, deployObstacles } from '../chain/decide.js';
import type { Fleet } from '../fleet/fleet.js';
import { draftAfter } from '../fleet/hypothetical.js';
import { compileNode } from './compile-node.js';
import {
  rulesIn,
  type NodeSnapshot,
  type Rule,
  type TlsCertificate,
  type UpstreamCluster,
} from '../snapshot/snapshot.js';

/** Ids of rules. */
interface RuleDifference {
  readonly added: readonly string[];
  readonly changed: readonly string[];
  readonly removed: readonly string[];
}

export interface DeployPlan {
  readonly nodes: readonly (RuleDifference & { readonly node_id: string })[];
  readonly collisions: readonly string[];
}

/** The plan of deploying a chain's current definition; undefined for an unknown chain. */
export function planDeploy(fleet: Fleet, chainId: string): DeployPlan | undefined {
  const chain = fleet.get(chainKey, chainId);
  if (chain === undefined) return undefined;
  const deployed = draftAfter(fleet, [deployEvent(fleet, chain)]);
  const nodes = nodesOf(chain.deployed, chain).map((node_id) => ({
    node_id,
    ...snapshotDifference(compileNode(fleet, node_id), compileNode(deployed, node_id)),
  }));
  return {
    nodes: nodes.filter(({ added, changed, removed }) => added.length + changed.length + removed.length > 0),
    collisions: deployObstacles(deployed, chain),
  };
}

/** A rule counts as changed when its upstream cluster or certificate changes, too. */
export function snapshotDifference(before: NodeSnapshot, after: NodeSnapshot): RuleDifference {
  const old = rulesOf(before);
  const next = rulesOf(after);
  return {
    added: [...next.keys()].filter((id) => !old.has(id)),
    changed: [...next.keys()].filter((id) => old.has(id) && !jsonEqual(old.get(id), next.get(id))),
    removed: [...old.keys()].filter((id) => !next.has(id)),
  };
}

/** A rule, with whatever else of a snapshot belongs to it. */
interface WholeRule {
  readonly rule: Rule;
  readonly cluster: UpstreamCluster | undefined;
  readonly certificate: TlsCertificate | undefined;
}

/** The rules that differ, as they were and as they are: a changed rule twice. */
export function changedRules(before: NodeSnapshot, after: NodeSnapshot): Record<'before' | 'after', Rule[]> {
  const [old, next] = [rulesOf(before), rulesOf(after)];
  const others = (all: typeof old, than: typeof old): Rule[] =>
    [...all].flatMap(([id, whole]) => (jsonEqual(whole, than.get(id)) ? [] : [whole.rule]));
  return { before: others(old, next), after: others(next, old) };
}

function rulesOf(snapshot: NodeSnapshot): ReadonlyMap<string, WholeRule> {
  const clusters = new Map(snapshot.upstream_clusters.map((cluster) => [cluster.name, cluster]));
  const certificates = new Map(snapshot.tls_certificates.map((one) => [one.credential_id, one]));
  return new Map(
    rulesIn(snapshot).map((rule) => {
      const cluster = clusters.get(clusterOf(rule) ?? '');
      const certificate = 'tls_credential_id' in rule ? certificates.get(rule.tls_credential_id) : undefined;
      return [rule.rule_id, { rule, cluster, certificate }];
    }),
  );
}

function clusterOf(rule: Rule): string | undefined {
  if ('upstream_cluster' in rule) return rule.upstream_cluster;
  return 'outbound' in rule && rule.outbound.next.kind === 'upstream_cluster' ? rule.outbound.next.name : undefined;
}
