/**
 * The rules of a route in the snapshots of its nodes, its claims on them, and its rows in the port table. Implements
 * `docs/contract/domain.md#legacy-route`, `docs/contract/wire.md#configuration` and listener intent of
 * `docs/contract/domain.md#l4-chain`.
 */
import type { Claim } from '../listeners/claims.js';
import type { IntendedListener } from '../listeners/intent.js';
import { dialEndpoint } from '../node/hops.js';
import { ownerOf } from '../references/references.js';
import type { FleetView } from '../resource/fleet-view.js';
import { ruleBytes, textBound } from '../snapshot/bound.js';
import type { NodeRules } from '../snapshot/snapshot.js';
import { noRules } from '../snapshot/snapshot.js';
import type { RouteHop, RouteState } from './route.js';
import { matchOf, routeKey } from './route.js';

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

/** The listeners of an enabled route; none of a disabled one. */
export function claimsOfRoute(route: RouteState): readonly Claim[] {
  if (!route.enabled) return [];
  return route.hops.map((hop) => ({
    owner: ownerOf(routeKey.type, route.id),
    nodeId: hop.node_id,
    transport: 'tcp',
    addr: hop.listen_addr,
    port: hop.listen_port,
    family: 'http',
    values: [matchOf(route)],
  }));
}

/**
 * A rule and an upstream cluster of its own for each hop. As with chains, a hop whose next hop has no known address has
 * none: a rule that leads nowhere would have the agent reject the snapshot.
 */
export function routeRulesOn(fleet: FleetView, route: RouteState, nodeId: string): NodeRules {
  const live = liveHop(fleet, route, nodeId);
  if (live === undefined || live.next === '') return noRules;
  const { index, hop, next } = live;
  const rule_id = `${route.id}/${index}`;
  return {
    http: [
      {
        rule_id,
        origin: { resource_type: 'route', resource_id: route.id, resource_name: route.name, hop_index: index },
        listen_addr: hop.listen_addr,
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
export function routeBound(fleet: FleetView, route: RouteState, nodeId: string): number {
  const live = liveHop(fleet, route, nodeId);
  if (live === undefined) return 0;
  const { name, host, path_prefix } = route;
  return ruleBytes + [name, host, path_prefix, live.next].reduce((sum, text) => sum + textBound(text), 0);
}

/** The listener and the route that an enabled route intends on a node. */
export function intendedByRoute(fleet: FleetView, route: RouteState, nodeId: string): readonly IntendedListener[] {
  const live = liveHop(fleet, route, nodeId);
  if (live === undefined) return [];
  const { hop, next } = live;
  const entry = {
    source: 'l4_chain',
    sourceLabel: `route: ${route.name}`,
    matchKind: 'default',
    matchValue: matchOf(route),
    nextHop: next,
    resourceId: route.id,
    deployed: true,
  } as const;
  const { listen_addr: listenAddr, listen_port: listenPort } = hop;
  return [{ nodeId, transport: 'tcp', listenAddr, listenPort, routes: [entry] }];
}
