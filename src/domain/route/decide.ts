/** Decides commands about routes. Implements `docs/contract/domain.md#legacy-route`. */
import { err, ok } from '../../kernel/result.js';
import { collisionOf, collisionSentence } from '../listeners/collisions.js';
import { undialable, unknownNode } from '../node/hops.js';
import { changesOf, withChanges } from '../resource/change.js';
import type { Decisions } from '../resource/declaration.js';
import type { FleetView } from '../resource/fleet-view.js';
import { pick } from '../resource/lifecycle.js';
import type { Refusal } from '../resource/refusal.js';
import { existing, exists, nameTaken, unlessRefused } from '../resource/rules.js';
import { routeProblems } from './definition.js';
import type { RouteCommand, RouteDefinition, RouteEvent, RouteState } from './route.js';
import { routeFields, routeKey } from './route.js';
import { claimsOfRoute } from './rules.js';

export const decideRoute: Decisions<RouteCommand, RouteEvent> = {
  CreateRoute(fleet, { type: _, id, ...fields }) {
    const route = { ...fields, id, version: 0, created_at: '', updated_at: '' };
    return unlessRefused(refusalOf(fleet, route), { type: 'RouteCreated', data: { route_id: id, ...fields } });
  },
  UpdateRoute(fleet, command) {
    const route = existing(fleet, routeKey, command);
    if (!route.ok) return err(route.error);
    const { id } = route.value;
    const changes = changesOf(route.value, command, routeFields);
    if (Object.keys(changes).length === 0) return ok([]);
    const refusal = refusalOf(fleet, withChanges(route.value, changes));
    return unlessRefused(refusal, { type: 'RouteUpdated', data: { route_id: id, changes } });
  },
  DeleteRoute(fleet, command) {
    const route = existing(fleet, routeKey, command);
    if (!route.ok) return err(route.error);
    return ok([{ type: 'RouteDeleted', data: { route_id: route.value.id, ...pick(route.value, routeFields) } }]);
  },
  RestoreRoute(fleet, { type: _, id, former, ...fields }) {
    const route = { ...fields, id, version: 0, created_at: '', updated_at: '' };
    const event = { type: 'RouteRestored', data: { route_id: id, ...fields, former } } as const;
    return unlessRefused(exists(fleet, routeKey.type, id) ?? refusalOf(fleet, route), event);
  },
};

/** Why a route cannot be saved as it is. Checked in the order of `docs/contract/rest.md#envelope`. */
function refusalOf(fleet: FleetView, route: RouteState): Refusal | undefined {
  return (
    definitionRefusal(route) ??
    unknownNode(fleet, route.hops) ??
    nameTaken(fleet, routeKey.type, route.name, route.version === 0 ? undefined : route.id) ??
    collisionRefusal(fleet, route) ??
    // A saved route is live unless it is disabled.
    (route.enabled ? undialable(fleet, route.hops, 'its address') : undefined)
  );
}

function definitionRefusal({ hops }: RouteDefinition): Refusal | undefined {
  for (const { path, message } of routeProblems(hops)) {
    return { code: 'invalid_request', message: `hops[${path[1]}].node_id: ${message}` };
  }
  return undefined;
}

/** The claims of a route are in the order of its hops. */
function collisionRefusal(fleet: FleetView, route: RouteState): Refusal | undefined {
  for (const [index, claim] of claimsOfRoute(route).entries()) {
    const collision = collisionOf(fleet, claim);
    if (collision === undefined) continue;
    const message = collisionSentence(fleet, collision, `hops[${index}].listen_port`);
    return { code: 'conflict', message };
  }
  return undefined;
}
