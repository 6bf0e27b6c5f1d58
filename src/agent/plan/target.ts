/**
 * Turns a snapshot into one target (listeners, what each relays to, clusters) or lists everything that is wrong with
 * it. Opens no socket: the whole target is known to be valid before a socket is touched. Pure. Implements
 * `docs/contract/agent-protocol.md#the-reference-agent`, `docs/contract/domain.md#listeners-and-collisions` and section
 * 3 of `docs/contract/service-specification.txt`.
 */
import type { ConfigApplyError, RuntimeConfigSnapshot } from '../../gen/svc/control/v1/config.js';
import type { ListenerPolicy } from '../../gen/svc/control/v1/gateway.js';
import type { RuleOrigin } from '../../gen/svc/control/v1/transport.js';
import { parseHostPort } from '../../kernel/host-port.js';
import { groupBy } from '../../kernel/maps.js';
import { forEach } from '../../kernel/pieces.js';
import { err, ok, type Result } from '../../kernel/result.js';
import type { ContextOf } from './certificates.js';
import { createHttpRoutes, createNameTable, type HttpRoute } from './matches.js';
import type {
  Cluster,
  DialledRoute,
  HealthCheck,
  ListenerPlan,
  NamedRule,
  PlainService,
  RelayRoute,
  Target,
  TcpService,
  UdpService,
  UpstreamTls,
} from './plan.js';
import { applyError } from './apply-error.js';
import { checkRules, type CheckedRule, type RuleAction } from './rule-checks.js';

const maxRules = 16_384;
/** How many listeners are planned before other work may run. */
const listenersPerPiece = 1_000;

interface PlanOptions {
  /** Reject a snapshot with anything that this agent cannot run. */
  readonly rejectUnsupported: boolean;
  /** Makes the contexts of the snapshot's certificates. */
  readonly contextOf: ContextOf;
}

/**
 * Plans in pieces, because a snapshot may have thousands of rules.
 * @returns the target, or the errors, each with the resource and the REST field that its rule comes from
 */
export function* planTarget(
  snapshot: RuntimeConfigSnapshot,
  { rejectUnsupported, contextOf }: PlanOptions,
): Generator<void, Result<Target, readonly ConfigApplyError[]>> {
  const errors: ConfigApplyError[] = [];
  const clusters = readClusters(snapshot, errors);
  const rules = yield* checkRules(snapshot, clusters, contextOf, errors);
  if (rules.length > maxRules) {
    const message = `expected at most ${maxRules} rules, got ${rules.length}`;
    errors.push({ resourceType: '', resourceId: '', path: '', message });
  }
  const listeners = yield* joinListeners(rules, snapshot.gateway?.listenerPolicies ?? [], errors);
  const unsupported = unsupportedOf(snapshot, rules);
  if (rejectUnsupported) errors.push(...unsupported);
  return errors.length > 0
    ? err(errors)
    : ok({
        listeners,
        routes: routesOf(rules),
        clusters,
        checks: checksOf(snapshot, clusters, rules),
        pins: pinsOf(rules),
        unsupported,
      });
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

function routesOf(rules: readonly CheckedRule[]): readonly DialledRoute[] {
  return rules.flatMap((rule) => {
    const route = rule.unsupported === undefined ? routeOf(rule) : undefined;
    return route === undefined || rule.listener === undefined ? [] : [{ transport: rule.listener.transport, route }];
  });
}

function checksOf(
  snapshot: RuntimeConfigSnapshot,
  clusters: ReadonlyMap<string, Cluster>,
  rules: readonly CheckedRule[],
): Map<string, HealthCheck> {
  const dialled = new Map<string, UpstreamTls | undefined>();
  for (const rule of rules) {
    const route = routeOf(rule);
    if (rule.listener?.transport === 'tcp' && route?.next.kind === 'cluster')
      dialled.set(route.next.name, tlsOf(route));
  }
  const checks = new Map<string, HealthCheck>();
  for (const { name, healthCheck } of snapshot.gateway?.upstreamClusters ?? []) {
    const cluster = clusters.get(name);
    const everyMs = healthCheck?.intervalMs ?? 0;
    if (everyMs === 0 || cluster?.enabled !== true || !dialled.has(name)) continue;
    checks.set(name, { everyMs, endpoints: cluster.endpoints, tls: dialled.get(name) });
  }
  return checks;
}

const routeOf = ({ action }: CheckedRule): RelayRoute | undefined =>
  action?.kind === 'names' || action?.kind === 'enc' ? action.rule.route : action?.route;
const tlsOf = ({ security }: RelayRoute): UpstreamTls | undefined => (security.kind === 'tls' ? security : undefined);

function pinsOf(rules: readonly CheckedRule[]): Map<string, UpstreamTls> {
  const pins = new Map<string, UpstreamTls>();
  for (const rule of rules) {
    const route = routeOf(rule);
    const tls = route && tlsOf(route);
    if (tls !== undefined) pins.set(tls.ruleId, tls);
  }
  return pins;
}

function readClusters(snapshot: RuntimeConfigSnapshot, errors: ConfigApplyError[]): Map<string, Cluster> {
  // A registered upstream's cluster is named by the upstream's id; only the rule names the cluster of a route's hop.
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

function listenerKey(transport: string, addr: string, port: number): string {
  return `${transport} ${addr} ${port}`;
}

/** Rules with one transport, address and port share a listener. */
function* joinListeners(
  rules: readonly CheckedRule[],
  policies: readonly ListenerPolicy[],
  errors: ConfigApplyError[],
): Generator<void, Map<string, ListenerPlan>> {
  const groups = groupBy(
    rules,
    ({ listener }) => listener && listenerKey(listener.transport, listener.addr, listener.port),
  );
  const rawFirst = new Set(
    policies.filter(putsRawFirst).map((policy) => listenerKey(policy.transport, policy.listenAddr, policy.listenPort)),
  );
  const listeners = new Map<string, ListenerPlan>();
  yield* forEach(groups, listenersPerPiece, ([key, group]) => {
    const [first] = group;
    if (first?.listener === undefined) return;
    checkSharing(group, errors);
    const { transport, addr, port } = first.listener;
    const place = { key, addr, port, origins: originsOf(group) };
    // One unsupported rule makes the whole listener unsupported: its traffic would reach another rule's next hop.
    const actions = group.flatMap(({ unsupported, action }) => (unsupported === undefined && action ? [action] : []));
    const whole = actions.length === group.length ? actions : [];
    const plan: ListenerPlan =
      transport === 'tcp'
        ? { ...place, routes: [], transport, service: tcpService(whole, rawFirst.has(key)) }
        : { ...place, routes: [], transport, service: udpService(whole, rawFirst.has(key)) };
    const routes = plan.service === undefined ? [] : group.flatMap((rule) => rule.routes);
    listeners.set(key, { ...plan, routes });
  });
  return listeners;
}

/** One origin for each resource. */
function originsOf(group: readonly CheckedRule[]): ListenerPlan['origins'] {
  const byResource = new Map(group.map(({ origin }) => [`${origin.resourceType} ${origin.resourceId}`, origin]));
  return [...byResource.values()];
}

/** Before the kind that RAW could be mistaken for: TLS, or Noise over UDP. */
function putsRawFirst({ transport, priorityOrder }: ListenerPolicy): boolean {
  const [raw, other] = [priorityOrder.indexOf('raw'), priorityOrder.indexOf(transport === 'udp' ? 'noise' : 'tls')];
  return raw !== -1 && raw < other;
}

/** The service of a TCP socket; undefined without rules. */
function tcpService(actions: readonly RuleAction[], rawFirst: boolean): TcpService | undefined {
  const names: (readonly [string, NamedRule])[] = [];
  const http: HttpRoute<RelayRoute>[] = [];
  let fallback: PlainService | undefined;
  for (const action of actions) {
    switch (action.kind) {
      case 'relay':
        fallback = action;
        break;
      case 'names':
        for (const name of action.names) names.push([name, action.rule]);
        break;
      case 'http':
        http.push(action);
        break;
      case 'enc':
        // Only on UDP sockets.
        break;
      default:
        action satisfies never;
    }
  }
  if (http.length > 0) fallback = { kind: 'http', routes: createHttpRoutes(http) };
  if (names.length === 0) return fallback;
  const rules = actions.flatMap((action) => (action.kind === 'names' ? [action.rule] : []));
  const reality = rules.flatMap(({ route, accept }) => (accept.kind === 'reality' ? [{ route, hop: accept.hop }] : []));
  const [first] = reality;
  if (first !== undefined && actions.length === 1) return { kind: 'reality', rule: first };
  return {
    kind: 'names',
    names: createNameTable(names),
    fallback: fallback ?? (first && { kind: 'reality', rule: first }),
    hops: reality.map(({ hop }) => hop),
    rawFirst: rawFirst && fallback !== undefined,
  };
}

/** The service of a UDP socket; undefined without rules. */
function udpService(actions: readonly RuleAction[], rawFirst: boolean): UdpService | undefined {
  const enc = actions.flatMap((action) => (action.kind === 'enc' ? [action.rule] : []));
  const raw = actions.find((action) => action.kind === 'relay');
  return actions.length === 0 ? undefined : { enc, fallback: raw?.route, rawFirst };
}

function checkSharing(group: readonly CheckedRule[], errors: ConfigApplyError[]): void {
  const taken = new Set<string>();
  // Together, the HTTP routes of a listener are its fallback.
  const http = group.some(({ action }) => action?.kind === 'http');
  for (const rule of group) {
    if (group.length > 1 && rule.exclusive) {
      errors.push(applyError(rule.origin, 'listen_port', 'a FAKE_TCP rule cannot share its listener'));
    }
    if (rule.action?.kind === 'relay' && http) {
      errors.push(applyError(rule.origin, 'listen_port', 'a RAW rule cannot share its listener with HTTP routes'));
    }
    for (const match of rule.matches) {
      if (taken.has(match))
        errors.push(applyError(rule.origin, 'listen_port', 'another rule of this listener matches the same traffic'));
      taken.add(match);
    }
  }
}
