/**
 * The fields of an L4 chain's definition in requests and answers; `chain-view.ts` has the whole answer. The rules of
 * `domain/chain/definition.ts` also check bodies here. Implements `docs/contract/rest.md#l4-chains`.
 */
import { z } from 'zod';
import { outers, payloads, securities, type ChainFields, type Hop, type Target } from '../../../domain/chain/chain.js';
import { definitionProblems, type PartialDefinition } from '../../../domain/chain/definition.js';
import { limits } from '../../../kernel/limits.js';
import {
  anyAddress,
  boolean,
  description,
  distinct,
  endpoint,
  host,
  integer,
  listenIp,
  list,
  name,
  namePattern,
  object,
  oneOf,
  port,
  upstreamReality,
  upstreamTls,
  uuid,
} from '../schemas/fields.js';
import type { JsonObject } from '../../../kernel/json.js';
import { ownFields, type Shape } from './resource-shape.js';
import { component, documented, sample } from '../schemas/documented.js';
import { idOf, nodeId, upstreamRealitySchema, upstreamTlsSchema } from '../schemas/shared-schemas.js';
import { expected } from '../schemas/validation.js';

const { maxStreams } = limits.fleet;

const exampleHop: Hop = {
  node_id: sample.entryNode,
  listen_addr: anyAddress,
  listen_port: 443,
  outer: 'tcp',
  security: 'reality',
  server_names: ['app.example'],
  credential_id: sample.reality,
};

/** Descriptions of the fields of a hop, in requests and in answers. */
const aboutHop = {
  node_id: 'Node of the hop',
  listen_addr: 'Address that it listens on',
  listen_port: 'Port that it listens on',
  outer: 'Transport of the hop before, or of the client',
  security: 'How that transport is secured',
  server_names: 'Names that the hop answers to, also wildcards; empty: those of its credential',
  credential_id: 'Credential for `tls` and `reality`, and for UDP with `noise`',
  max_streams: 'Maximum of streams for each connection, for outer `quic`',
  dial_addr: "Host name or IP address that the hop before dials, instead of the node's",
};

const requestedHop = object({
  node_id: documented(uuid, aboutHop.node_id),
  listen_addr: documented(listenIp.optional(), `${aboutHop.listen_addr}; default \`${anyAddress}\``),
  listen_port: documented(port, aboutHop.listen_port, 443),
  outer: documented(oneOf(outers), aboutHop.outer),
  security: documented(oneOf(securities), aboutHop.security),
  server_names: documented(distinct(namePattern).optional(), aboutHop.server_names, ['app.example']),
  credential_id: documented(uuid.optional(), aboutHop.credential_id, sample.reality),
  max_streams: documented(
    integer(1, maxStreams.max).optional(),
    `${aboutHop.max_streams}; default \`${maxStreams.default}\``,
    maxStreams.default,
  ),
  dial_addr: documented(host.optional(), aboutHop.dial_addr, 'edge-1.example'),
}).meta({ id: 'Hop', description: 'A hop of a chain', examples: [exampleHop] });

/** A hop as it is stored: with defaults, without unset fields. */
function hopOf({ listen_addr, server_names, ...requested }: z.output<typeof requestedHop>): Hop {
  const { node_id, credential_id, max_streams: requestedStreams, dial_addr, ...rest } = requested;
  const max_streams = requestedStreams ?? (rest.outer === 'quic' ? maxStreams.default : undefined);
  return {
    node_id,
    listen_addr: listen_addr ?? anyAddress,
    ...rest,
    ...(server_names === undefined || server_names.length === 0 ? {} : { server_names }),
    ...(credential_id === undefined ? {} : { credential_id }),
    ...(max_streams === undefined ? {} : { max_streams }),
    ...(dial_addr === undefined ? {} : { dial_addr }),
  };
}

const aboutTarget = {
  upstream_id: 'Upstream that is the target',
  endpoint: 'Target as `host:port`, with an IPv6 address in brackets',
  tls: 'TLS to the endpoint; plain without tls and reality',
  reality: 'Set when the endpoint is a REALITY server; excludes tls',
};

const requestedTarget = z
  .union(
    [
      object({ upstream_id: documented(uuid, aboutTarget.upstream_id, sample.upstream) }).meta({
        id: 'UpstreamTarget',
        description: 'A registered upstream',
      }),
      object({
        endpoint: documented(endpoint, aboutTarget.endpoint, 'app.example:8443'),
        tls: documented(upstreamTls.optional(), aboutTarget.tls),
        reality: documented(upstreamReality.optional(), aboutTarget.reality),
      }).meta({ id: 'EndpointTarget', description: 'An endpoint without a name' }),
    ],
    { error: expected('either {"upstream_id"} or {"endpoint", "tls"?, "reality"?}') },
  )
  .meta({ id: 'Target', description: 'The target of a chain: an upstream or an endpoint' });

function targetOf(requested: z.output<typeof requestedTarget>): Target {
  if ('upstream_id' in requested) return requested;
  const { endpoint, tls, reality } = requested;
  return { endpoint, ...(tls !== undefined && { tls }), ...(reality !== undefined && { reality }) };
}

const hopSchema = z
  .object({
    node_id: documented(nodeId, aboutHop.node_id),
    listen_addr: documented(z.string(), aboutHop.listen_addr, anyAddress),
    listen_port: documented(z.int(), aboutHop.listen_port, 443),
    outer: documented(z.enum(outers), aboutHop.outer),
    security: documented(z.enum(securities), aboutHop.security),
    server_names: documented(z.array(z.string()).optional(), aboutHop.server_names, ['app.example']),
    credential_id: documented(idOf('', sample.reality).optional(), aboutHop.credential_id, sample.reality),
    max_streams: documented(z.int().optional(), aboutHop.max_streams, maxStreams.default),
    dial_addr: documented(z.string().optional(), aboutHop.dial_addr, 'edge-1.example'),
  })
  .meta({ id: 'ShownHop', description: 'A hop of a chain, without unset fields', examples: [exampleHop] });

const targetSchema = z
  .union([
    component('ShownUpstreamTarget', 'A registered upstream', {
      upstream_id: idOf(aboutTarget.upstream_id, sample.upstream),
    }),
    component('ShownEndpointTarget', 'An endpoint without a name', {
      endpoint: documented(z.string(), aboutTarget.endpoint, 'app.example:8443'),
      tls: documented(upstreamTlsSchema.optional(), aboutTarget.tls),
      reality: documented(upstreamRealitySchema.optional(), aboutTarget.reality),
    }),
  ])
  .meta({ id: 'ShownTarget', description: 'The target of a chain: an upstream or an endpoint' });

export const chainShape: Shape<ChainFields> = {
  name: { about: 'Name, unique among chains', example: 'front', request: name, response: z.string() },
  description: {
    about: 'Free text',
    example: 'customers of the app',
    request: description,
    response: z.string().nullable(),
    initial: null,
  },
  enabled: {
    about: 'Whether its deployed definition runs; takes effect at once',
    example: true,
    request: boolean(),
    response: z.boolean(),
    initial: true,
  },
  payload: { about: 'Payload that it carries', example: 'tcp', request: oneOf(payloads), response: z.enum(payloads) },
  hops: {
    about: 'Its hops, in order',
    example: [exampleHop],
    request: list(requestedHop.transform(hopOf), 1, limits.fleet.hops),
    response: z.array(hopSchema),
  },
  target: {
    about: 'Its target',
    example: { upstream_id: sample.upstream },
    request: requestedTarget.transform(targetOf),
    response: targetSchema,
  },
};

/** What a deploy publishes. */
export const definitionSchema = component('L4ChainDefinition', 'The part of a chain that a deploy publishes', {
  payload: documented(z.enum(payloads), 'Payload that it carries', 'tcp'),
  hops: documented(z.array(hopSchema), 'Its hops, in order'),
  target: documented(targetSchema, 'Its target'),
});

/** The fields of a chain in a document of the fleet, without defaults. */
export function chainInFile(state: object): JsonObject {
  const hops = (state as ChainFields).hops.map(({ listen_addr, max_streams, ...hop }) => ({
    ...hop,
    ...(listen_addr === anyAddress ? {} : { listen_addr }),
    ...(max_streams === undefined || max_streams === maxStreams.default ? {} : { max_streams }),
  }));
  return { ...ownFields(chainShape, state), hops };
}

/** Checks the fields of a body against one another. */
export function checkDefinition(checked: PartialDefinition, ctx: z.core.$RefinementCtx): void {
  for (const { path, message } of definitionProblems(checked)) {
    ctx.issues.push({ code: 'custom', path: [...path], message, input: undefined });
  }
}
