/**
 * Joins the rules that listen on one socket into what that socket serves, or says which of them cannot share it. Pure.
 * Implements `docs/contract/domain.md#listeners-and-collisions` and section 3 of
 * `docs/contract/service-specification.txt`.
 */
import type { ConfigApplyError } from '../gen/svc/control/v1/config.js';
import type { ListenerPolicy } from '../gen/svc/control/v1/gateway.js';
import { createHttpRoutes } from './http-routes.js';
import type { HttpRoute } from './http-routes.js';
import type { ListenerPlan, NamedRule, PlainService, RelayRoute, TcpService } from './plan.js';
import { applyError } from './rule-checks.js';
import type { CheckedRule, RuleAction } from './rule-checks.js';
import { createNameTable } from './server-names.js';

function listenerKey(transport: string, addr: string, port: number): string {
  return `${transport} ${addr} ${port}`;
}

/** Rules with one transport, address and port share a listener. */
export function joinListeners(
  rules: readonly CheckedRule[],
  policies: readonly ListenerPolicy[],
  errors: ConfigApplyError[],
): Map<string, ListenerPlan> {
  const groups = new Map<string, CheckedRule[]>();
  for (const rule of rules) {
    if (rule.listener === undefined) continue;
    const key = listenerKey(rule.listener.transport, rule.listener.addr, rule.listener.port);
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [rule]);
    else group.push(rule);
  }
  const rawFirst = new Set(
    policies.filter(putsRawFirst).map((policy) => listenerKey(policy.transport, policy.listenAddr, policy.listenPort)),
  );
  const listeners = new Map<string, ListenerPlan>();
  for (const [key, group] of groups) {
    const [first] = group;
    if (first?.listener === undefined) continue;
    checkSharing(group, errors);
    const { transport, addr, port } = first.listener;
    const place = { key, addr, port, origins: originsOf(group) };
    // One unsupported rule makes the whole listener unsupported: its traffic would reach another rule's next hop.
    const actions = group.flatMap(({ unsupported, action }) => (unsupported === undefined && action ? [action] : []));
    const whole = actions.length === group.length ? actions : [];
    const plan: ListenerPlan =
      transport === 'tcp'
        ? { ...place, routes: [], transport, service: tcpService(whole, rawFirst.has(key)) }
        : { ...place, routes: [], transport, service: udpService(whole) };
    const routes = plan.service === undefined ? [] : group.flatMap((rule) => rule.routes);
    listeners.set(key, { ...plan, routes });
  }
  return listeners;
}

/** One origin for each resource. */
function originsOf(group: readonly CheckedRule[]): ListenerPlan['origins'] {
  const byResource = new Map(group.map(({ origin }) => [`${origin.resourceType} ${origin.resourceId}`, origin]));
  return [...byResource.values()];
}

function putsRawFirst({ priorityOrder }: ListenerPolicy): boolean {
  const [raw, tls] = [priorityOrder.indexOf('raw'), priorityOrder.indexOf('tls')];
  return raw !== -1 && raw < tls;
}

/** Undefined without rules. */
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
      default:
        action satisfies never;
    }
  }
  if (http.length > 0) fallback = { kind: 'http', routes: createHttpRoutes(http) };
  return names.length === 0 ? fallback : { kind: 'names', names: createNameTable(names), fallback, rawFirst };
}

/** The one RAW rule: whatever could share its socket is unsupported. */
function udpService(actions: readonly RuleAction[]): RelayRoute | undefined {
  const [only] = actions;
  return actions.length === 1 && only?.kind === 'relay' ? only.route : undefined;
}

function checkSharing(group: readonly CheckedRule[], errors: ConfigApplyError[]): void {
  const taken = new Set<string>();
  // The HTTP routes of a listener are together its fallback.
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
