/** Legacy routes: HTTP by host and path prefix. Implements `docs/contract/rest.md#legacy-routes`. */
import { z } from 'zod';
import { dialAddress, type NodeState } from '../../../domain/node/node.js';
import { routeProblems, type RouteDefinition, type RouteHop, type RouteState } from '../../../domain/route/route.js';
import { formatHostPort } from '../../../kernel/host-port.js';
import { limits } from '../../../kernel/limits.js';
import type { RestApp, RestDeps } from '../deps.js';
import { answers, ok, type Shown } from '../answers/envelope.js';
import {
  anyAddress,
  boolean,
  canonical,
  endpoint,
  host,
  listenIp,
  list,
  name,
  object,
  port,
  uuid,
} from '../schemas/fields.js';
import { orNotFound, pathId } from '../checks/path-id.js';
import { nodeStatus } from '../fleet/node-status.js';
import { statusOf } from '../../../reports/status.js';
import { resourceRoutes } from './resource-routes.js';
import { ownFields, resourceSchema, type Shape } from './resource-shape.js';
import { presumed } from '../schemas/answered.js';
import { component, documented, sample } from '../schemas/documented.js';
import { idOf, nodeId } from '../schemas/shared-schemas.js';
import { warning } from './warnings.js';

/** The characters of a path (RFC 3986), with complete escape sequences. */
const path = /^\/(?:[A-Za-z0-9\-._~!$&'()*+,;=:@/]|%[0-9A-Fa-f]{2})*$/;
const pathPrefix = canonical('a path that starts with /, in the characters of a URL', (value) =>
  path.test(value) ? value : undefined,
);

const requestedHop = object({
  node_id: documented(uuid, 'Node of the hop'),
  listen_addr: presumed(listenIp, 'Address that it listens on', `default \`${anyAddress}\``),
  listen_port: documented(port, 'Port that it listens on', 80),
}).meta({ id: 'RouteHop', description: 'A hop of a legacy route' });

/** A hop as it is stored and answered. */
function hopOf({ node_id, listen_addr, listen_port }: z.output<typeof requestedHop>): RouteHop {
  return { node_id, listen_addr: listen_addr ?? anyAddress, listen_port };
}

const shape: Shape<RouteDefinition> = {
  name: { about: 'Name, unique among routes', example: 'shop', request: name },
  host: {
    about: 'Host that it matches: a name or an IP address',
    example: 'shop.example',
    request: host,
  },
  path_prefix: {
    about: 'Path prefix that it matches',
    example: '/api',
    request: pathPrefix,
    initial: '/',
  },
  enabled: { about: 'Whether it is live', example: true, request: boolean(), initial: true },
  hops: {
    about: 'Nodes that requests go through, in their order',
    example: [{ node_id: sample.entryNode, listen_addr: anyAddress, listen_port: 80 }],
    request: list(requestedHop.transform(hopOf), 1, limits.fleet.hops),
  },
  backend: {
    about: 'Where the last hop sends requests: `host:port`, with an IPv6 address in brackets',
    example: 'shop.internal.example:8080',
    request: endpoint,
  },
};

const hopViews = z
  .object({
    items: documented(
      z.array(
        component('RouteHopView', 'A hop with its node and its next hop', {
          index: documented(z.int(), 'Place in the route, from 0', 0),
          node_id: documented(nodeId, 'Node of the hop'),
          node_name: documented(z.string(), 'Its name; empty if this instance does not know it yet', 'edge-1'),
          listen_addr: documented(z.string(), 'Address that it listens on', anyAddress),
          listen_port: documented(z.int(), 'Port that it listens on', 80),
          next_hop: documented(
            z.string(),
            '`host:port` that it sends requests to; empty while no address is known',
            'shop.internal.example:8080',
          ),
          node_status: nodeStatus,
        }),
      ),
      'In the order of the route',
    ),
  })
  .meta({ description: 'The hops' });

export function legacyRouteRoutes(app: RestApp, deps: RestDeps): void {
  const queries = deps.fleet.resources.route;

  resourceRoutes(app, {
    path: '/api/routes',
    what: 'route',
    rollsOut: true,
    names: { one: 'Route', many: 'Routes' },
    summaries: {
      list: 'List legacy routes',
      create: 'Create a legacy route; it is live at once',
      get: 'Get a legacy route',
      update: 'Change a legacy route, at once',
      remove: 'Delete a legacy route, at once',
    },
    shape,
    check(checked, ctx) {
      for (const { path: at, message } of routeProblems(checked['hops'] as RouteDefinition['hops'] | undefined)) {
        ctx.issues.push({ code: 'custom', path: [...at], message, input: undefined });
      }
    },
    inFile: {
      fieldsOf: (state) => ({
        ...ownFields(shape, state),
        hops: (state as RouteDefinition).hops.map(({ listen_addr, ...hop }) =>
          listen_addr === anyAddress ? hop : { ...hop, listen_addr },
        ),
      }),
    },
    ...warning(
      deps,
      'route',
      'Route',
      resourceSchema('Route', 'A legacy HTTP route', shape, { id: idOf('Id, a UUID', sample.route) }),
    ),
    ...queries,
    ...deps.commands.resources.route,
  });

  app.get('/api/routes/:id/hops', {
    config: { access: 'anyone', takes: 'none' },
    schema: {
      operationId: 'listRouteHops',
      summary: 'List the hops of a legacy route with their nodes and next hops',
      description: 'In the order of the hops, not paged.',
      response: answers(hopViews),
    },
    handler: async (request) => {
      const route = orNotFound(queries.get(pathId(request.params, 'route')), 'route');
      return ok({ items: hopsOf(deps, route) });
    },
  });
}

function hopsOf(deps: RestDeps, { hops, backend }: RouteState): Shown<typeof hopViews>['items'] {
  return hops.map((hop, index) => {
    const next = hops[index + 1];
    return {
      index,
      node_id: hop.node_id,
      node_name: deps.fleet.node(hop.node_id)?.name ?? '',
      listen_addr: hop.listen_addr,
      listen_port: hop.listen_port,
      next_hop: next === undefined ? backend : dialled(deps.fleet.node(next.node_id), next.listen_port),
      node_status: statusOf(deps, hop.node_id),
    };
  });
}

/** The address that the previous hop dials. */
function dialled(node: NodeState | undefined, portOfHop: number): string {
  const address = node === undefined ? null : dialAddress(node);
  return address === null ? '' : formatHostPort({ host: address, port: portOfHop });
}
