/** The sections of documents of the fleet, as the routes of this release declare them, without a service. */
import { fleetQueries } from '../../src/projections/fleet/fleet-queries.js';
import { emptyFleet } from '../../src/domain/fleet/fleet.js';
import type { Fleet } from '../../src/domain/fleet/fleet.js';
import type { WholeFleet } from '../../src/projections/port.js';
import { systemClock } from '../../src/kernel/clock.js';
import type { RestApp, RestDeps } from '../../src/transport/rest/deps.js';
import type { Sections } from '../../src/transport/rest/fleet-file/sections.js';
import { sectionsOf } from '../../src/transport/rest/fleet-file/sections.js';
import type { DeclaredRoute } from '../../src/transport/rest/openapi/route-declaration.js';
import { routesOfResources } from '../../src/transport/rest/resources.js';

export function declaredSections(): Sections {
  const routes: DeclaredRoute[] = [];
  const app = { route: (route: DeclaredRoute) => routes.push(route), addHook: () => undefined };
  const anything: unknown = new Proxy({}, { get: () => anything, ownKeys: () => [] });
  const deps = {
    fleet: fleetQueries({ fleet: emptyFleet }, systemClock),
    commands: anything,
    webhooks: anything,
    clock: systemClock,
  };
  for (const add of Object.values(routesOfResources)) add(app as unknown as RestApp, deps as unknown as RestDeps);
  return sectionsOf(routes);
}

/** A fleet as an export reads it. */
export const wholeOf = (fleet: Fleet): WholeFleet => fleetQueries({ fleet: () => fleet }, systemClock).whole();
