/**
 * L3 networks: nodes joined by tunnels that carry IP packets. What the fields of one network must keep among themselves is in
 * `domain/l3-network/definition.ts`, which also checks bodies here. Implements `docs/contract/rest.md#l3-networks-extension`.
 */
import { z } from 'zod';
import type { PartialNetwork } from '../../domain/l3-network/definition.js';
import { definitionProblems } from '../../domain/l3-network/definition.js';
import type { RequestedMember, RequestedNetwork, RequestedTunnel } from '../../domain/l3-network/l3-network.js';
import { canonicalCidr, canonicalNetwork } from '../../kernel/cidr.js';
import { limits } from '../../kernel/limits.js';
import type { RestApp, RestDeps } from './deps.js';
import { boolean, canonical, distinct, dnsName, integer, ip, list, name, object, port, text, uuid } from './fields.js';
import { resourceRoutes } from './resource-routes.js';
import type { Shape } from './resource-shape.js';
import { resourceSchema } from './resource-shape.js';

const { members, networkIdMax, contextIdMax, mtu, interfaceNameChars } = limits.fleet.l3;

const address = canonical('an address as CIDR, such as 10.0.0.1/24 or fd00::1/64', canonicalCidr);
const network = canonical(
  'a network as CIDR without bits after its prefix, such as 10.0.0.0/8 or fd00::/64',
  canonicalNetwork,
);

const requestedMember = object({
  node_id: uuid,
  interface_name: text(1, interfaceNameChars).optional().meta({ description: 'svc<network_id> when absent' }),
  addresses: distinct(address, 1, 'address'),
  routes: distinct(network, 0, 'network'),
  features: distinct(text(1, limits.rest.stringChars), 0, 'feature').optional(),
}).meta({ id: 'Member' });

/** A member as it is stored and answered, but for a name of its interface: unset fields left out. */
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
  listener_node_id: uuid,
  listen_addr: ip,
  listen_port: port,
  connector_node_id: uuid,
  context_id: integer(1, contextIdMax)
    .optional()
    .meta({ description: 'assigned when absent; kept for the same listener and connector' }),
}).meta({ id: 'Tunnel' });

function tunnelOf({ context_id, ...ends }: z.output<typeof requestedTunnel>): RequestedTunnel {
  return context_id === undefined ? ends : { ...ends, context_id };
}

const memberSchema = z
  .object({
    node_id: z.string(),
    interface_name: z.string(),
    addresses: z.array(z.string()),
    routes: z.array(z.string()),
    features: z.array(z.string()).optional(),
  })
  .meta({ id: 'ShownMember' });

const tunnelSchema = z
  .object({
    listener_node_id: z.string(),
    listen_addr: z.string(),
    listen_port: z.int(),
    connector_node_id: z.string(),
    context_id: z.int(),
  })
  .meta({ id: 'ShownTunnel' });

const shape: Shape<RequestedNetwork> = {
  name: { request: name, response: z.string() },
  enabled: { request: boolean(), response: z.boolean(), initial: true },
  mtu: { request: integer(mtu.min, mtu.max), response: z.int(), initial: mtu.default },
  credential_id: { request: uuid, response: z.string() },
  server_name: { request: dnsName, response: z.string() },
  members: { request: list(requestedMember.transform(memberOf), 1, members), response: z.array(memberSchema) },
  tunnels: {
    request: list(requestedTunnel.transform(tunnelOf), 0, limits.rest.tunnels),
    response: z.array(tunnelSchema),
    initial: [],
  },
};

/** Checks the fields of a body against one another. */
function checkDefinition(checked: PartialNetwork, ctx: z.core.$RefinementCtx): void {
  for (const { path, message } of definitionProblems(checked)) {
    ctx.issues.push({ code: 'custom', path: [...path], message, input: undefined });
  }
}

export function l3NetworkRoutes(app: RestApp, deps: RestDeps): void {
  resourceRoutes(app, {
    path: '/api/l3-networks',
    what: 'L3 network',
    tag: 'l3-networks',
    names: { one: 'L3Network', many: 'L3Networks' },
    summaries: {
      list: 'List L3 networks',
      create: 'Create an L3 network; it is live at once where it is enabled',
      get: 'Get an L3 network',
      update: 'Change an L3 network, at once where it is enabled',
      remove: 'Delete an L3 network, at once where it is enabled',
    },
    details: { create: 'The service assigns `network_id`, and a `context_id` to each tunnel that gives none.' },
    shape,
    check: checkDefinition,
    schema: resourceSchema('L3Network', shape, { network_id: z.int().min(1).max(networkIdMax) }),
    ...deps.projections.resources.l3_network,
    ...deps.commands.resources.l3_network,
    // Answered as it is stored.
    view: (state) => state,
    createdView: (state) => state,
  });
}
