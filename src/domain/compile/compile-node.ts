/**
 * Compiles the whole configuration of one node from the fleet, with placeholders for secrets. Each declaration compiles
 * the part of its resource. Implements `docs/contract/wire.md#configuration`, which also fixes the order of rules.
 */
import type { Fleet } from '../fleet/fleet.js';
import type { AnyResource, AnyState } from '../fleet/resources.js';
import { effectiveMultiplex, settingsOf } from '../settings/settings.js';
import {
  noRuleLists,
  ruleKinds,
  type ListenerPolicy,
  type NodeSnapshot,
  type RuleKind,
  type RuleKinds,
  type TlsCertificate,
  type UpstreamCluster,
} from '../snapshot/snapshot.js';

const compareText = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

interface Listening {
  readonly rule_id: string;
  readonly listen_addr?: string;
  readonly listen_port?: number;
}

/** By listen port, address as text, then rule id; a rule without a listener, by its id alone. */
function byListener(a: Listening, b: Listening): number {
  return (
    (a.listen_port ?? 0) - (b.listen_port ?? 0) ||
    compareText(a.listen_addr ?? '', b.listen_addr ?? '') ||
    compareText(a.rule_id, b.rule_id)
  );
}

function addRules<K extends RuleKind>(
  to: { readonly [P in K]: RuleKinds[P][] },
  part: { readonly [P in K]?: readonly RuleKinds[P][] },
  kind: K,
): void {
  const rules = part[kind];
  if (rules !== undefined) for (const rule of rules) to[kind].push(rule);
}

/** The resources that may have rules on a node. */
export function* contributorsOf(
  fleet: Fleet,
  nodeId: string,
): Generator<{ readonly compiled: NonNullable<AnyResource['compiled']>; readonly state: AnyState }> {
  for (const owner of fleet.contributors.get(nodeId)) {
    const resolved = fleet.resolve(owner);
    const compiled = resolved?.declaration.compiled ?? null;
    if (resolved !== undefined && compiled !== null) yield { compiled, state: resolved.state };
  }
}

/** By transport, port, then address as text. */
function byKey(a: ListenerPolicy, b: ListenerPolicy): number {
  return (
    compareText(a.transport, b.transport) || a.listen_port - b.listen_port || compareText(a.listen_addr, b.listen_addr)
  );
}

/** Equal entries once, sorted by name. */
function onceEach<T>(entries: readonly T[], nameOf: (entry: T) => string): readonly T[] {
  if (entries.length < 2) return entries;
  const byName = new Map(entries.map((entry) => [nameOf(entry), entry]));
  return [...byName.values()].sort((a, b) => compareText(nameOf(a), nameOf(b)));
}

const nameOfCluster = ({ name }: UpstreamCluster): string => name;
const idOfCertificate = ({ credential_id }: TlsCertificate): string => credential_id;

/**
 * The snapshot of a node; generation 0 and no rules for an unknown one. One edit may recompile every node of the fleet, so
 * this walks the contributions once and makes no list that it does not return.
 */
export function compileNode(fleet: Fleet, nodeId: string): NodeSnapshot {
  const clusters: UpstreamCluster[] = [];
  const certificates: TlsCertificate[] = [];
  const policies: ListenerPolicy[] = [];
  const rules = noRuleLists();
  for (const { compiled, state } of contributorsOf(fleet, nodeId)) {
    const part = compiled.rulesOn(fleet, state, nodeId);
    for (const kind of ruleKinds) addRules(rules, part, kind);
    if (part.clusters !== undefined) for (const entry of part.clusters) clusters.push(entry);
    if (part.certificates !== undefined) for (const entry of part.certificates) certificates.push(entry);
    if (part.policies !== undefined) for (const entry of part.policies) policies.push(entry);
  }
  for (const kind of ruleKinds) rules[kind].sort(byListener);
  const { multiplex, multiplex_port } = effectiveMultiplex(settingsOf(fleet), nodeId);
  return {
    node_id: nodeId,
    generation: fleet.generationOf(nodeId) ?? 0,
    upstream_clusters: onceEach(clusters, nameOfCluster),
    tls_certificates: onceEach(certificates, idOfCertificate),
    ...rules,
    listener_policies: policies.sort(byKey),
    node: { multiplex, multiplex_port: multiplex_port ?? 0 },
  };
}
