/** The declaration of legacy routes. Implements `docs/contract/domain.md#legacy-route`. */
import { listenersOf } from '../listeners/claims.js';
import { collisionOf, collisionSentence } from '../listeners/collisions.js';
import { dialEndpoint, hopAfter, undialable, unknownNode } from '../node/hops.js';
import { nodeKey } from '../node/node.js';
import { ownerOf } from '../references/references.js';
import { defineResource } from '../resource/define-resource.js';
import type { FleetView } from '../resource/fleet-view.js';
import type { Refusal } from '../resource/refusal.js';
import type { RouteDefinition, RouteState } from './route.js';
import { liveNodes, routeProblems } from './route.js';
import { claimsOfRoute, intendedByRoute, routeBound, routeRulesOn } from './rules.js';

export const route = defineResource<RouteDefinition>()('route', {
  fields: ['name', 'host', 'path_prefix', 'enabled', 'hops', 'backend'],
  lists: ['hops'],
  invalid: (fleet, next) => definitionRefusal(next) ?? unknownNode(fleet, next.hops),
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
    intendedOn: intendedByRoute,
    liveOn: (state, nodeId) => listenersOf(claimsOfRoute(state), nodeId),
    nodesUsing: () => [],
    diallersOf({ enabled, hops }, nodeId) {
      const index = enabled ? hops.findIndex((hop) => hop.node_id === nodeId) : -1;
      return hops.slice(Math.max(0, index - 1), Math.max(0, index)).map((hop) => hop.node_id);
    },
    linksFrom(fleet, { enabled, hops }, nodeId) {
      const next = enabled ? hopAfter(hops, nodeId) : undefined;
      return next === undefined ? [] : [{ toNodeId: next.node_id, endpoint: dialEndpoint(fleet, next) }];
    },
  },
  objectionTo: null,
  touches: (_fleet, before, after) =>
    // The last hop alone leads to the backend; everything else of a route is in the rules of all its hops.
    before !== undefined && after !== undefined && differOnlyInBackend(before, after)
      ? liveNodes(after).slice(-1)
      : new Set([...liveNodes(before), ...liveNodes(after)]),
});

function differOnlyInBackend(before: RouteState, after: RouteState): boolean {
  return (['name', 'host', 'path_prefix', 'enabled', 'hops'] as const).every((field) => before[field] === after[field]);
}

function definitionRefusal({ hops }: RouteDefinition): Refusal | undefined {
  for (const { path, message } of routeProblems(hops)) {
    return { code: 'invalid_request', message: `hops[${path[1]}].node_id: ${message}` };
  }
  return undefined;
}

/** The claims of a route follow the order of its hops. */
function collisionRefusal(fleet: FleetView, state: RouteState): Refusal | undefined {
  for (const [index, claim] of claimsOfRoute(state).entries()) {
    const collision = collisionOf(fleet, claim);
    if (collision === undefined) continue;
    const message = collisionSentence(fleet, collision, `hops[${index}].listen_port`);
    return { code: 'conflict', message };
  }
  return undefined;
}
