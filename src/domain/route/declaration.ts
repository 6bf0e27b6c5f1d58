/**
 * The declaration of legacy routes: their rules in snapshots, their claims, and their rows in the port table. Implements
 * `docs/contract/domain.md#legacy-route`, `docs/contract/wire.md#configuration` and listener intent of
 * `docs/contract/domain.md#l4-chain`.
 */
import { plainIp } from '../../kernel/addresses.js';
import { listenersOf, type Claim } from '../listeners/claims.js';
import { collisionOf, collisionSentence } from '../listeners/collisions.js';
import { dialEndpoint, hopAfter, hopAfterRule, undialable } from '../node/hops.js';
import { nodeKey } from '../node/node.js';
import { ownerOf } from '../references/references.js';
import { defineResource } from '../resource/define-resource.js';
import type { FleetView } from '../resource/fleet-view.js';
import type { Refusal } from '../resource/refusal.js';
import { firstProblem, unknownNode } from '../resource/rules.js';
import {
  liveNodes,
  routeProblems,
  matchOf,
  routeKey,
  type RouteDefinition,
  type RouteState,
  type RouteHop,
} from './route.js';
import type { IntendedListener } from '../listeners/intent.js';
import { ruleBytes, textBound } from '../snapshot/bound.js';
import { noRules, type NodeRules } from '../snapshot/snapshot.js';

interface LiveHop {
  readonly index: number;
  readonly hop: RouteHop;
  /** `host:port`; `""` while no address of the next hop is known. */
  readonly next: string;
}

/** The hop on a node of an enabled route. */
function liveHop(fleet: FleetView, { enabled, hops, backend }: RouteState, nodeId: string): LiveHop | undefined {
  const index = hops.findIndex((one) => one.node_id === nodeId);
  const [hop, next] = hops.slice(index);
  if (!enabled || index === -1 || hop === undefined) return undefined;
  return { index, hop, next: next === undefined ? backend : dialEndpoint(fleet, next) };
}

/** The listeners of an enabled route. */
function claimsOfRoute(route: RouteState): readonly Claim[] {
  if (!route.enabled) return [];
  return route.hops.map((hop) => ({
    owner: ownerOf(routeKey.type, route.id),
    nodeId: hop.node_id,
    transport: 'tcp',
    addr: plainIp(hop.listen_addr),
    port: hop.listen_port,
    family: 'http',
    // To agents, a slash at the end of a path prefix makes no difference.
    values: [matchOf(route).replace(/\/+$/, '')],
  }));
}

/** A rule and a cluster of its own for each hop, but not while the next hop's address is unknown, as with chains. */
function routeRulesOn(fleet: FleetView, route: RouteState, nodeId: string): NodeRules {
  const live = liveHop(fleet, route, nodeId);
  if (live === undefined || live.next === '') return noRules;
  const { index, hop, next } = live;
  const rule_id = `${route.id}/${index}`;
  return {
    http_proxy_rules: [
      {
        rule_id,
        origin: { resource_type: 'route', resource_id: route.id, resource_name: route.name, hop_index: index },
        listen_addr: plainIp(hop.listen_addr),
        listen_port: hop.listen_port,
        host: route.host,
        path_prefix: route.path_prefix,
        upstream_cluster: rule_id,
      },
    ],
    clusters: [{ name: rule_id, endpoints: [next], server_names: [], enabled: true, health_check_interval_ms: null }],
  };
}

/** An upper bound of those rules in bytes. */
function routeBound(fleet: FleetView, route: RouteState, nodeId: string): number {
  const live = liveHop(fleet, route, nodeId);
  if (live === undefined) return 0;
  const { name, host, path_prefix } = route;
  return ruleBytes + [name, host, path_prefix, live.next].reduce((sum, text) => sum + textBound(text), 0);
}

/** The listener and the route that an enabled route intends on a node. */
function intendedByRoute(fleet: FleetView, route: RouteState, nodeId: string): readonly IntendedListener[] {
  const live = liveHop(fleet, route, nodeId);
  if (live === undefined) return [];
  const { hop, next } = live;
  const entry = {
    source: 'l4_chain',
    sourceLabel: `route: ${route.name}`,
    matchKind: 'default',
    matchValue: matchOf(route),
    nextHop: next,
    deployed: true,
  } as const;
  const { listen_addr: listenAddr, listen_port: listenPort } = hop;
  return [{ nodeId, transport: 'tcp', listenAddr, listenPort, routes: [entry] }];
}

export const route = defineResource<RouteDefinition>()('route', {
  fields: ['name', 'host', 'path_prefix', 'enabled', 'hops', 'backend'],
  invalid: (fleet, next) => firstProblem(routeProblems(next.hops)) ?? unknownNode(fleet, 'hops', next.hops),
  // A saved route is live unless it is disabled.
  conflict: (fleet, next) =>
    collisionRefusal(fleet, next) ?? (next.enabled ? undialable(fleet, next.hops, 'its address') : undefined),
  indexed: {
    dependsOn: ['enabled', 'host', 'path_prefix', 'hops'],
    references: ({ hops }) => hops.map((hop) => ownerOf(nodeKey.type, hop.node_id)),
    claims: claimsOfRoute,
    nodes: liveNodes,
  },
  compiled: {
    rulesOn: routeRulesOn,
    bound: routeBound,
    features: (_fleet, { enabled }) => (enabled ? ['http'] : []),
    intendedOn: intendedByRoute,
    liveOn: (state, nodeId) => listenersOf(claimsOfRoute(state), nodeId),
    nodesUsing: () => [],
    diallersOf({ enabled, hops }, nodeId) {
      const index = enabled ? hops.findIndex((hop) => hop.node_id === nodeId) : -1;
      return hops.slice(Math.max(0, index - 1), Math.max(0, index)).map((hop) => hop.node_id);
    },
    dialledBy: ({ hops }, ruleId) => hopAfterRule(hops, ruleId)?.node_id,
    linksFrom(fleet, { enabled, hops }, nodeId) {
      const next = enabled ? hopAfter(hops, nodeId) : undefined;
      return next === undefined ? [] : [{ toNodeId: next.node_id, endpoint: dialEndpoint(fleet, next) }];
    },
  },
  touches: (_fleet, before, after) =>
    // Only the last hop leads to the backend; everything else is in the rules of all hops.
    before !== undefined && after !== undefined && differOnlyInBackend(before, after)
      ? liveNodes(after).slice(-1)
      : new Set([...liveNodes(before), ...liveNodes(after)]),
});

function differOnlyInBackend(before: RouteState, after: RouteState): boolean {
  return (['name', 'host', 'path_prefix', 'enabled', 'hops'] as const).every((field) => before[field] === after[field]);
}

/** Claims have the order of the hops. */
function collisionRefusal(fleet: FleetView, state: RouteState): Refusal | undefined {
  for (const [index, claim] of claimsOfRoute(state).entries()) {
    const collision = collisionOf(fleet, claim);
    if (collision === undefined) continue;
    const message = collisionSentence(fleet, collision, `hops[${index}].listen_port`);
    return { code: 'conflict', message };
  }
  return undefined;
}
