/**
 * Reads a snapshot as one target (listeners, what each relays to, clusters) or lists everything that is wrong with it.
 * Pure: no socket is touched before the whole target is known to be valid.
 * Implements `docs/contract/agent-protocol.md#the-reference-agent`; the sharing of listeners follows section 3 of
 * `docs/contract/service-specification.txt`.
 */
import type { ConfigApplyError, RuntimeConfigSnapshot } from '../gen/svc/control/v1/config.js';
import { err, ok } from '../kernel/result.js';
import type { Result } from '../kernel/result.js';
import { parseHostPort } from '../kernel/host-port.js';
import { applyError, checkRules } from './rule-checks.js';
import type { CheckedRule } from './rule-checks.js';
import type { Cluster, ListenerPlan, Target, Transport } from './plan.js';
import { tuning } from './tuning.js';

function listenerKey(transport: Transport, addr: string, port: number): string {
  return `${transport} ${addr} ${port}`;
}

/**
 * @param rejectUnsupported treat a kind of listener or outbound that this agent cannot run as an error
 * @returns the target, or the errors, each with the resource and the REST field that its rule comes from
 */
export function planTarget(
  snapshot: RuntimeConfigSnapshot,
  rejectUnsupported: boolean,
): Result<Target, readonly ConfigApplyError[]> {
  const errors: ConfigApplyError[] = [];
  const clusters = readClusters(snapshot, errors);
  const rules = checkRules(snapshot, clusters, errors);
  if (rules.length > tuning.rules) {
    errors.push({
      resourceType: '',
      resourceId: '',
      path: '',
      message: `expected at most ${tuning.rules} rules, got ${rules.length}`,
    });
  }
  const listeners = joinListeners(rules, errors);
  const unsupported = rules.filter((rule) => rule.unsupported !== undefined);
  if (rejectUnsupported) {
    for (const rule of unsupported) {
      errors.push(
        applyError(rule.origin, rule.unsupportedField, `not supported by this agent: ${rule.unsupported ?? ''}`),
      );
    }
  }
  const node = snapshot.node;
  const omitted = unsupported.map(({ ruleId, unsupported: why }) => `${ruleId}: ${why ?? ''}`);
  if (node?.multiplex === true) {
    const why = 'multiplexing several listeners over one port';
    if (rejectUnsupported)
      errors.push({
        resourceType: 'connectivity',
        resourceId: '',
        path: 'multiplex',
        message: `not supported by this agent: ${why}`,
      });
    omitted.push(why);
  }
  return errors.length > 0 ? err(errors) : ok({ listeners, clusters, unsupported: omitted });
}

function readClusters(snapshot: RuntimeConfigSnapshot, errors: ConfigApplyError[]): Map<string, Cluster> {
  const clusters = new Map<string, Cluster>();
  for (const cluster of snapshot.gateway?.upstreamClusters ?? []) {
    const reportError = (path: string, message: string): void => {
      errors.push({ resourceType: 'l4_upstream', resourceId: cluster.name, path, message });
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

/** Rules with one transport, address and port share a listener. */
function joinListeners(rules: readonly CheckedRule[], errors: ConfigApplyError[]): Map<string, ListenerPlan> {
  const groups = new Map<string, CheckedRule[]>();
  for (const rule of rules) {
    if (rule.listener === undefined) continue;
    const key = listenerKey(rule.listener.transport, rule.listener.addr, rule.listener.port);
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [rule]);
    else group.push(rule);
  }
  const listeners = new Map<string, ListenerPlan>();
  for (const [key, group] of groups) {
    const [first] = group;
    if (first?.listener === undefined) continue;
    checkSharing(group, errors);
    // One unsupported rule makes the whole listener unsupported: its traffic would reach another rule's next hop.
    const relay = group.length === 1 && first.unsupported === undefined ? first.next : undefined;
    listeners.set(key, {
      key,
      ...first.listener,
      origin: first.origin,
      relay: relay === undefined ? undefined : { origin: first.origin, next: relay },
      routes: relay === undefined ? [] : first.routes,
    });
  }
  return listeners;
}

function checkSharing(group: readonly CheckedRule[], errors: ConfigApplyError[]): void {
  const taken = new Set<string>();
  for (const rule of group) {
    if (group.length > 1 && rule.exclusive) {
      errors.push(applyError(rule.origin, 'listen_port', 'a FAKE_TCP rule cannot share its listener'));
    }
    for (const match of rule.matches) {
      if (taken.has(match))
        errors.push(applyError(rule.origin, 'listen_port', 'another rule of this listener matches the same traffic'));
      taken.add(match);
    }
  }
}
