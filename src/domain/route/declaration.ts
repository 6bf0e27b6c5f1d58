/** The declaration of legacy routes. */
import { listenersOf } from '../listeners/claims.js';
import { dialEndpoint, hopAfter } from '../node/hops.js';
import { nodeKey } from '../node/node.js';
import { ownerOf } from '../references/references.js';
import { entryByEntry, eventAudit, fieldChanges } from '../resource/audit-change.js';
import { withChanges } from '../resource/change.js';
import type { Changes } from '../resource/change.js';
import type { Compiled, Indexed, Resource } from '../resource/declaration.js';
import type { FleetView } from '../resource/fleet-view.js';
import { lifecycleAudit } from '../resource/lifecycle-audit.js';
import { lifecycleFold } from '../resource/lifecycle-fold.js';
import { lifecycleUndo } from '../resource/undo.js';
import { decideRoute } from './decide.js';
import type { RouteCommand, RouteEvent, RouteState } from './route.js';
import { liveNodes, routeFields, routeKey } from './route.js';
import { claimsOfRoute, intendedByRoute, routeBound, routeRulesOn } from './rules.js';

const audit = lifecycleAudit(routeFields);
const undo = lifecycleUndo('route', 'Route', 'route');

const indexed: Indexed<RouteState> = {
  dependsOn: ['enabled', 'host', 'path_prefix', 'hops'],
  references: (route) => route.hops.map((hop) => ownerOf(nodeKey.type, hop.node_id)),
  claims: claimsOfRoute,
  nodes: liveNodes,
};

const compiled: Compiled<RouteState> = {
  rulesOn: routeRulesOn,
  bound: routeBound,
  intendedOn: intendedByRoute,
  liveOn: (route, nodeId) => listenersOf(claimsOfRoute(route), nodeId),
  nodesUsing: () => [],
  diallersOf(route, nodeId) {
    const index = route.enabled ? route.hops.findIndex((hop) => hop.node_id === nodeId) : -1;
    return route.hops.slice(Math.max(0, index - 1), Math.max(0, index)).map((hop) => hop.node_id);
  },
  linksFrom(fleet, route, nodeId) {
    const next = route.enabled ? hopAfter(route.hops, nodeId) : undefined;
    return next === undefined ? [] : [{ toNodeId: next.node_id, endpoint: dialEndpoint(fleet, next) }];
  },
};

/** The last hop alone leads to the backend; everything else of a route is in the rules of all its hops. */
function touchedByUpdate(fleet: FleetView, routeId: string, changes: Changes): readonly string[] {
  const route = fleet.get(routeKey, routeId);
  if (route === undefined) return [];
  const after = withChanges(route, changes);
  const onlyTheBackend = Object.keys(changes).every((field) => field === 'backend');
  return onlyTheBackend ? liveNodes(after).slice(-1) : [...new Set([...liveNodes(route), ...liveNodes(after)])];
}

export const route: Resource<'route', 'Route', 'route', RouteState, RouteEvent, RouteCommand> = {
  type: 'route',
  noun: 'Route',
  singular: 'route',
  fields: routeFields,
  decide: decideRoute,
  evolve: lifecycleFold('Route', 'route'),
  indexed,
  compiled,
  objectionTo: null,
  events: {
    RouteCreated: {
      schemaVersion: 1,
      audit: audit.created,
      undo: undo.created,
      touches: (_fleet, { data }) => liveNodes(data),
    },
    RouteUpdated: {
      schemaVersion: 1,
      audit: ({ data }) => eventAudit('update', fieldChanges(data.changes).flatMap(entryByEntry('hops'))),
      undo: undo.updated,
      touches: (fleet, { data }) => touchedByUpdate(fleet, data.route_id, data.changes),
    },
    RouteDeleted: {
      schemaVersion: 1,
      audit: audit.deleted,
      undo: undo.deleted,
      touches: (fleet, { data }) => liveNodes(fleet.get(routeKey, data.route_id)),
    },
    RouteRestored: {
      schemaVersion: 1,
      audit: audit.restored,
      undo: undo.restored,
      touches: (_fleet, { data }) => liveNodes(data),
    },
  },
};
