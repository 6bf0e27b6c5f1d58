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
import { answered, presumed } from '../schemas/answered.js';
import { component, documented, sample } from '../schemas/documented.js';
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

const requestedHop = object({
  node_id: documented(uuid, 'Node of the hop'),
  listen_addr: presumed(listenIp, 'Address that it listens on', `default \`${anyAddress}\``),
  listen_port: documented(port, 'Port that it listens on', 443),
  outer: documented(oneOf(outers), 'Transport of the hop before, or of the client'),
  security: documented(oneOf(securities), 'How that transport is secured'),
  server_names: documented(
    distinct(namePattern).optional(),
    'Names that the hop answers to, also wildcards; empty: those of its credential',
    ['app.example'],
  ),
  credential_id: documented(
    uuid.optional(),
    'Credential for `tls` and `reality`, and for UDP with `noise`',
    sample.reality,
  ),
  max_streams: documented(
    integer(1, maxStreams.max).optional(),
    `Maximum of streams for each connection, for outer \`quic\`; default \`${maxStreams.default}\``,
    maxStreams.default,
  ),
  dial_addr: documented(
    host.optional(),
    "Host name or IP address that the hop before dials, instead of the node's",
    'edge-1.example',
  ),
}).meta({ id: 'Hop', description: 'A hop of a chain; unset fields are omitted', examples: [exampleHop] });

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

const requestedTarget = z
  .union(
    [
      object({ upstream_id: documented(uuid, 'Upstream that is the target', sample.upstream) }).meta({
        id: 'UpstreamTarget',
        description: 'A registered upstream',
      }),
      object({
        endpoint: documented(endpoint, 'Target as `host:port`, with an IPv6 address in brackets', 'app.example:8443'),
        tls: documented(upstreamTls.optional(), 'TLS to the endpoint; plain without tls and reality'),
        reality: documented(upstreamReality.optional(), 'Set when the endpoint is a REALITY server; excludes tls'),
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

export const chainShape: Shape<ChainFields> = {
  name: { about: 'Name, unique among chains', example: 'front', request: name },
  description: {
    about: 'Free text',
    example: 'customers of the app',
    request: description,
    initial: null,
  },
  enabled: {
    about: 'Whether its deployed definition runs; takes effect at once',
    example: true,
    request: boolean(),
    initial: true,
  },
  payload: { about: 'Payload that it carries', example: 'tcp', request: oneOf(payloads) },
  hops: {
    about: 'Its hops, in order',
    example: [exampleHop],
    request: list(requestedHop.transform(hopOf), 1, limits.fleet.hops),
  },
  target: {
    about: 'Its target',
    example: { upstream_id: sample.upstream },
    request: requestedTarget.transform(targetOf),
  },
};

/** What a deploy publishes. */
export const definitionSchema = component('L4ChainDefinition', 'The part of a chain that a deploy publishes', {
  payload: documented(z.enum(payloads), 'Payload that it carries', 'tcp'),
  hops: documented(z.array(answered(requestedHop)), 'Its hops, in order'),
  target: documented(answered(requestedTarget), 'Its target'),
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
