/** Beacons. Invented, to show what the routes of a resource take. */
import type { BeaconDefinition } from '../../../domain/beacon/beacon.js';
import type { RestApp, RestDeps } from '../deps.js';
import { distinct, integer, name, text, uuid } from '../schemas/fields.js';
import { resourceRoutes } from './resource-routes.js';
import { resourceSchema, type Shape } from './resource-shape.js';
import { sample } from '../schemas/documented.js';

const shape: Shape<BeaconDefinition> = {
  name: { about: 'Name', example: 'north', request: name },
  node_id: { about: 'Node that it stands on', example: sample.entryNode, request: uuid },
  interval_secs: { about: 'Seconds', example: 5, request: integer(1, 3600), initial: 30 },
  colours: {
    about: 'Of its light',
    example: ['red'],
    request: distinct(text(1, 32)),
    initial: [],
  },
};

export function beaconRoutes(app: RestApp, deps: RestDeps): void {
  resourceRoutes(app, {
    path: '/api/beacons',
    what: 'beacon',
    names: { one: 'Beacon', many: 'Beacons' },
    summaries: {
      list: 'List beacons',
      create: 'Create a beacon',
      get: 'Get a beacon',
      update: 'Change a beacon',
      remove: 'Delete a beacon',
    },
    shape,
    schema: resourceSchema('Beacon', 'A beacon on a node', shape, {}),
    ...deps.fleet.resources.beacon,
    ...deps.commands.resources.beacon,
  });
}
