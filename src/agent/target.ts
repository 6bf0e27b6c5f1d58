/**
 * Reads a snapshot as one target (listeners, what each relays to, clusters) or lists everything that is wrong with it.
 * Opens no socket: the whole target is known to be valid before one is touched. How rules share a listener is in
 * `sharing.ts`. Implements `docs/contract/agent-protocol.md#the-reference-agent`.
 */
import type { ConfigApplyError, RuntimeConfigSnapshot } from '../gen/svc/control/v1/config.js';
import type { RuleOrigin } from '../gen/svc/control/v1/transport.js';
import { err, ok } from '../kernel/result.js';
import type { Result } from '../kernel/result.js';
import { parseHostPort } from '../kernel/host-port.js';
import type { ContextOf } from './certificates.js';
import { applyError, checkRules } from './rule-checks.js';
import type { CheckedRule } from './rule-checks.js';
import type { Cluster, Target, UpstreamTls } from './plan.js';
import { joinListeners } from './sharing.js';
import { tuning } from './tuning.js';

interface PlanOptions {
  /** Whether what this agent cannot run is an error. */
  readonly rejectUnsupported: boolean;
  /** Makes the contexts of the snapshot's certificates. */
  readonly contextOf: ContextOf;
}

/** @returns the target, or the errors, each with the resource and the REST field that its rule comes from */
export function planTarget(
  snapshot: RuntimeConfigSnapshot,
  { rejectUnsupported, contextOf }: PlanOptions,
): Result<Target, readonly ConfigApplyError[]> {
  const errors: ConfigApplyError[] = [];
  const clusters = readClusters(snapshot, errors);
  const rules = checkRules(snapshot, clusters, contextOf, errors);
  if (rules.length > tuning.rules) {
    const message = `expected at most ${tuning.rules} rules, got ${rules.length}`;
    errors.push({ resourceType: '', resourceId: '', path: '', message });
  }
  const listeners = joinListeners(rules, snapshot.gateway?.listenerPolicies ?? [], errors);
  const unsupported = unsupportedOf(snapshot, rules);
  if (rejectUnsupported) errors.push(...unsupported);
  return errors.length > 0 ? err(errors) : ok({ listeners, clusters, pins: pinsOf(rules), unsupported });
}

/** Everything that this agent cannot run. */
function unsupportedOf(snapshot: RuntimeConfigSnapshot, rules: readonly CheckedRule[]): readonly ConfigApplyError[] {
  const sentence = (what: string): string => `not supported by this agent: ${what}`;
  const found = rules.flatMap(({ origin, unsupported }) =>
    unsupported === undefined ? [] : [applyError(origin, unsupported.field, sentence(unsupported.what))],
  );
  if (snapshot.node?.multiplex === true) {
    const message = sentence('multiplexing several listeners over one port');
    found.push({ resourceType: 'connectivity', resourceId: 'connectivity', path: 'multiplex', message });
  }
  return found;
}

function pinsOf(rules: readonly CheckedRule[]): Map<string, UpstreamTls> {
  const pins = new Map<string, UpstreamTls>();
  for (const { action } of rules) {
    const tls = action?.kind === 'names' ? action.rule.route.tls : action?.route.tls;
    if (tls !== undefined) pins.set(tls.ruleId, tls);
  }
  return pins;
}

function readClusters(snapshot: RuntimeConfigSnapshot, errors: ConfigApplyError[]): Map<string, Cluster> {
  // The cluster of a registered upstream is named by its id, that of a route's hop by the rule.
  const routes = new Map<string, RuleOrigin>();
  for (const { upstreamCluster, origin } of snapshot.gateway?.httpProxyRules ?? []) {
    if (origin !== undefined) routes.set(upstreamCluster, origin);
  }
  const clusters = new Map<string, Cluster>();
  for (const cluster of snapshot.gateway?.upstreamClusters ?? []) {
    const reportError = (path: string, message: string): void => {
      const origin = routes.get(cluster.name);
      if (origin !== undefined) errors.push(applyError(origin, 'backend', message));
      else errors.push({ resourceType: 'l4_upstream', resourceId: cluster.name, path, message });
    };
    if (clusters.has(cluster.name)) reportError('name', 'the name of an upstream cluster must be unique');
    if (cluster.endpoints.length === 0) reportError('endpoint', 'expected at least one endpoint');
    const endpoints = cluster.endpoints.flatMap((text) => {
      const endpoint = parseHostPort(text);
      if (endpoint === undefined) reportError('endpoint', 'expected host:port, with an IPv6 host in brackets');
      return endpoint === undefined ? [] : [endpoint];
    });
    clusters.set(cluster.name, { name: cluster.name, endpoints, enabled: cluster.enabled });
  }
  return clusters;
}
