/**
 * L3 networks: nodes joined by tunnels that carry IP packets. The rules of `domain/l3-network/definition.ts` also check bodies
 * here. Implements `docs/contract/rest.md#l3-networks-extension`.
 */
import { z } from 'zod';
import { definitionProblems, type PartialNetwork } from '../../../domain/l3-network/definition.js';
import type {
  NetworkDefinition,
  RequestedMember,
  RequestedNetwork,
  RequestedTunnel,
} from '../../../domain/l3-network/l3-network.js';
import { canonicalCidr, canonicalNetwork } from '../../../kernel/cidr.js';
import type { JsonObject } from '../../../kernel/json.js';
import { limits } from '../../../kernel/limits.js';
import { answers, ok } from '../answers/envelope.js';
import { orNotFound, pathId } from '../checks/path-id.js';
import type { RestApp, RestDeps } from '../deps.js';
import { statusOf } from '../../../reports/status.js';
import { nodeStatus } from '../fleet/node-status.js';
import {
  boolean,
  canonical,
  cidrPattern,
  distinct,
  dnsName,
  integer,
  listenIp,
  list,
  name,
  object,
  port,
  text,
  uuid,
} from '../schemas/fields.js';
import { resourceRoutes } from './resource-routes.js';
import { ownFields, resourceSchema, type Shape } from './resource-shape.js';
import { presumed } from '../schemas/answered.js';
import { component, documented, sample } from '../schemas/documented.js';
import { idOf, nodeId } from '../schemas/shared-schemas.js';
import { warning } from './warnings.js';

const what = 'L3 network';
const { members, networkIdMax, contextIdMax, mtu, interfaceNameChars } = limits.fleet.l3;

const address = canonical('an address as CIDR, such as 10.0.0.1/24 or fd00::1/64', canonicalCidr).meta({
  pattern: cidrPattern,
});
const network = canonical(
  'a network as CIDR without bits after its prefix, such as 10.0.0.0/8 or fd00::/64',
  canonicalNetwork,
).meta({ pattern: cidrPattern });

const interfaceName = 'svc1';

const requestedMember = object({
  node_id: documented(uuid, 'Node of the member'),
  interface_name: presumed(
    text(1, interfaceNameChars),
    'Name of the TUN interface',
    '`svc<network_id>` when absent',
    interfaceName,
  ),
  addresses: documented(distinct(address, 1, 'address'), 'Addresses of the interface, as CIDR', ['10.20.0.1/24']),
  routes: documented(distinct(network, 0, 'network'), 'Networks behind this member, as CIDR', ['10.30.0.0/16']),
  features: documented(distinct(text(1, limits.rest.stringChars), 0, 'feature').optional(), 'Flags for the agent', [
    'gso',
  ]),
}).meta({ id: 'Member', description: 'A node in a network' });

/** A member as it is stored, without unset fields; its interface may still lack a name. */
function memberOf(requested: z.output<typeof requestedMember>): RequestedMember {
  const { node_id, interface_name, addresses, routes, features } = requested;
  return {
    node_id,
    ...(interface_name === undefined ? {} : { interface_name }),
    addresses,
    routes,
    ...(features === undefined || features.length === 0 ? {} : { features }),
  };
}

const requestedTunnel = object({
  listener_node_id: documented(uuid, 'Member that listens'),
  listen_addr: documented(listenIp, 'Address that it listens on'),
  listen_port: documented(port, 'Port that it listens on', 4443),
  connector_node_id: documented(uuid, 'Member that dials', sample.exitNode),
  context_id: presumed(
    integer(1, contextIdMax),
    'Number of the tunnel between both',
    'assigned when absent, and kept for the same listener and connector',
    1,
  ),
}).meta({ id: 'Tunnel', description: 'A tunnel between two members' });

function tunnelOf({ context_id, ...ends }: z.output<typeof requestedTunnel>): RequestedTunnel {
  return context_id === undefined ? ends : { ...ends, context_id };
}

const exampleMembers = [
  { node_id: sample.entryNode, interface_name: interfaceName, addresses: ['10.20.0.1/24'], routes: ['10.30.0.0/16'] },
  { node_id: sample.exitNode, interface_name: interfaceName, addresses: ['10.20.0.2/24'], routes: [] },
];

const shape: Shape<RequestedNetwork> = {
  name: { about: 'Name, unique among networks', example: 'backbone', request: name },
  enabled: { about: 'Whether it is live', example: true, request: boolean(), initial: true },
  mtu: {
    about: 'MTU of the interfaces',
    example: mtu.default,
    request: integer(mtu.min, mtu.max),
    initial: mtu.default,
  },
  credential_id: {
    about: 'REALITY credential of the tunnels',
    example: sample.reality,
    request: uuid,
  },
  server_name: {
    about: "One of the credential's names",
    example: 'app.example',
    request: dnsName,
  },
  members: {
    about: 'Its nodes',
    example: exampleMembers,
    request: list(requestedMember.transform(memberOf), 1, members),
  },
  tunnels: {
    about: 'Tunnels between its members',
    example: [
      {
        listener_node_id: sample.entryNode,
        listen_addr: '0.0.0.0',
        listen_port: 4443,
        connector_node_id: sample.exitNode,
        context_id: 1,
      },
    ],
    request: list(requestedTunnel.transform(tunnelOf), 0, limits.rest.tunnels),
    initial: [],
  },
};

/** Checks the fields of a body against one another. */
function checkDefinition(checked: PartialNetwork, ctx: z.core.$RefinementCtx): void {
  for (const { path, message } of definitionProblems(checked)) {
    ctx.issues.push({ code: 'custom', path: [...path], message, input: undefined });
  }
}

/** The fields of a network in a document of the fleet, without assigned ones. */
function networkInFile(state: object): JsonObject {
  const { network_id, members: joined, tunnels } = state as NetworkDefinition;
  return {
    ...ownFields(shape, state),
    members: joined.map(({ interface_name, ...member }) =>
      interface_name === `svc${network_id}` ? member : { ...member, interface_name },
    ),
    ...(tunnels.length === 0 ? {} : { tunnels: tunnels.map(({ context_id: _, ...tunnel }) => tunnel) }),
  } as JsonObject;
}

const memberNodes = component('L3NetworkNodes', 'The nodes of a network', {
  items: documented(
    z.array(
      component('L3NetworkNode', 'The node of a member', {
        node_id: documented(nodeId, 'Node of the member'),
        node_name: documented(z.string(), 'Its name; empty if this instance does not know it yet', 'edge-1'),
        node_status: nodeStatus,
      }),
    ),
    'In the order of the members',
  ),
});

const networkSchema = resourceSchema('L3Network', 'A network of tunnels that carry IP packets', shape, {
  id: idOf('Id, a UUID', sample.network),
  network_id: documented(z.int().min(1).max(networkIdMax), 'Assigned once; names the interfaces', 1),
});

export function l3NetworkRoutes(app: RestApp, deps: RestDeps): void {
  const queries = deps.fleet.resources.l3_network;
  resourceRoutes(app, {
    path: '/api/l3-networks',
    what,
    rollsOut: true,
    names: { one: 'L3Network', many: 'L3Networks' },
    summaries: {
      list: 'List L3 networks',
      create: 'Create an L3 network; it is live at once if it is enabled',
      get: 'Get an L3 network',
      update: 'Change an L3 network, at once if it is enabled',
      remove: 'Delete an L3 network, at once if it is enabled',
    },
    details: { create: 'The service assigns `network_id`, and a `context_id` to each tunnel without one.' },
    shape,
    check: checkDefinition,
    inFile: { fieldsOf: networkInFile },
    ...warning(deps, 'l3_network', 'L3Network', networkSchema),
    ...queries,
    ...deps.commands.resources.l3_network,
  });

  app.get('/api/l3-networks/:id/nodes', {
    config: { access: 'anyone', takes: 'none' },
    schema: {
      operationId: 'listL3NetworkNodes',
      summary: 'The nodes of an L3 network with their names and statuses',
      description: 'In the order of the members, not paged.',
      response: answers(memberNodes),
    },
    handler: async (request) => {
      const network = orNotFound(queries.get(pathId(request.params, what)), what);
      const ids = network.members.map(({ node_id }) => node_id);
      const items = ids.map((id) => ({
        node_id: id,
        node_name: deps.fleet.node(id)?.name ?? '',
        node_status: statusOf(deps, id),
      }));
      return ok({ items });
    },
  });
}
