/**
 * The fields of an L4 chain in requests and answers. Which combinations of payload, outer and security are allowed is
 * in `domain/chain/definition.ts`, which also checks bodies here, before anything else is read. Implements
 * `docs/contract/rest.md#l4-chains`.
 */
import { z } from 'zod';
import type { ChainFields, ChainState, ChainStatus, Hop, Target } from '../../domain/chain/chain.js';
import { chainStatuses, outers, payloads, securities } from '../../domain/chain/chain.js';
import type { PartialDefinition } from '../../domain/chain/definition.js';
import { definitionProblems } from '../../domain/chain/definition.js';
import { chainStatus } from '../../domain/chain/status.js';
import { limits } from '../../kernel/limits.js';
import {
  anyAddress,
  boolean,
  description,
  distinct,
  endpoint,
  host,
  integer,
  ip,
  list,
  name,
  namePattern,
  object,
  oneOf,
  port,
  upstreamTls,
  uuid,
} from './fields.js';
import type { Shape } from './resource-shape.js';
import { resourceSchema } from './resource-shape.js';
import { time, upstreamTlsSchema } from './shared-schemas.js';
import { expected } from './validation.js';

const { maxStreams } = limits.fleet;

const requestedHop = object({
  node_id: uuid,
  listen_addr: ip.optional().meta({ default: anyAddress }),
  listen_port: port,
  outer: oneOf(outers),
  security: oneOf(securities),
  server_names: distinct(namePattern).optional(),
  credential_id: uuid.optional(),
  max_streams: integer(1, maxStreams.max)
    .optional()
    .meta({ description: `of outer quic; default ${maxStreams.default}` }),
  dial_addr: host.optional(),
}).meta({ id: 'Hop' });

/** A hop as it is stored and answered: defaults filled in, unset fields left out. */
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
  .union([object({ upstream_id: uuid }), object({ endpoint, tls: upstreamTls.optional() })], {
    error: expected('either {"upstream_id"} or {"endpoint", "tls"?}'),
  })
  .meta({ id: 'Target' });

function targetOf(requested: z.output<typeof requestedTarget>): Target {
  if ('upstream_id' in requested) return requested;
  const { tls } = requested;
  return tls === undefined ? { endpoint: requested.endpoint } : { endpoint: requested.endpoint, tls };
}

const hopSchema = z
  .object({
    node_id: z.string(),
    listen_addr: z.string(),
    listen_port: z.int(),
    outer: z.enum(outers),
    security: z.enum(securities),
    server_names: z.array(z.string()).optional(),
    credential_id: z.string().optional(),
    max_streams: z.int().optional(),
    dial_addr: z.string().optional(),
  })
  .meta({ id: 'ShownHop' });

const targetSchema = z
  .union([z.object({ upstream_id: z.string() }), z.object({ endpoint: z.string(), tls: upstreamTlsSchema.optional() })])
  .meta({ id: 'ShownTarget' });

export const chainShape: Shape<ChainFields> = {
  name: { request: name, response: z.string() },
  description: { request: description, response: z.string().nullable(), initial: null },
  enabled: { request: boolean(), response: z.boolean(), initial: true },
  payload: { request: oneOf(payloads), response: z.enum(payloads) },
  hops: { request: list(requestedHop.transform(hopOf), 1, limits.fleet.hops), response: z.array(hopSchema) },
  target: { request: requestedTarget.transform(targetOf), response: targetSchema },
};

/** Checks the fields of a body against one another. */
export function checkDefinition(checked: PartialDefinition, ctx: z.core.$RefinementCtx): void {
  for (const { path, message } of definitionProblems(checked)) {
    ctx.issues.push({ code: 'custom', path: [...path], message, input: undefined });
  }
}

export const chainSchema = resourceSchema('Chain', chainShape, {
  status: z.enum(chainStatuses),
  deployed_version: z.int().nullable(),
  deployed_at: time.nullable(),
});

/** A chain as answers show it; the schema leaves out the deployed definition. */
export interface ChainView extends ChainState {
  readonly status: ChainStatus;
  readonly deployed_version: number | null;
  readonly deployed_at: string | null;
}

export function chainView(chain: ChainState): ChainView {
  return {
    ...chain,
    status: chainStatus(chain),
    deployed_version: chain.deployed?.chain_version ?? null,
    deployed_at: chain.deployed?.at ?? null,
  };
}
