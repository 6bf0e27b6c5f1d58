/**
 * The fields of an L4 chain: how a request asks for them and how an answer shows them. Which combinations of payload,
 * outer and security are allowed is the domain's (`domain/chain/definition.ts`), asked here so that a body is refused
 * before anything else is looked at. Implements `docs/contract/rest.md#l4-chains`.
 */
import { z } from 'zod';
import type { ChainFields, ChainState, Hop, Target } from '../../domain/chain/chain.js';
import { chainStatuses, outers, payloads, securities } from '../../domain/chain/chain.js';
import type { PartialDefinition } from '../../domain/chain/definition.js';
import { definitionProblems } from '../../domain/chain/definition.js';
import { chainStatus } from '../../domain/chain/status.js';
import type { ChainStatus } from '../../domain/chain/chain.js';
import { limits } from '../../kernel/limits.js';
import {
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
import { shownResource } from './resource-shape.js';
import { time } from './shared-schemas.js';
import { expected } from './validation.js';

const hop = object({
  node_id: uuid,
  listen_addr: ip.optional().meta({ default: '0.0.0.0' }),
  listen_port: port,
  outer: oneOf(outers),
  security: oneOf(securities),
  server_names: distinct(namePattern).optional(),
  credential_id: uuid.optional(),
  max_streams: integer(1, limits.fleet.maxStreams).optional(),
  dial_addr: host.optional(),
}).meta({ id: 'Hop' });

/** A hop as it is kept and shown: unset fields omitted, defaults there. */
function keptHop({ listen_addr, server_names, ...asked }: z.output<typeof hop>): Hop {
  const { node_id, credential_id, max_streams, dial_addr, ...rest } = asked;
  return {
    node_id,
    listen_addr: listen_addr ?? '0.0.0.0',
    ...rest,
    ...(server_names === undefined || server_names.length === 0 ? {} : { server_names }),
    ...(credential_id === undefined ? {} : { credential_id }),
    ...(max_streams === undefined ? {} : { max_streams }),
    ...(dial_addr === undefined ? {} : { dial_addr }),
  };
}

const target = z
  .union([object({ upstream_id: uuid }), object({ endpoint, tls: upstreamTls.optional() })], {
    error: expected('either {"upstream_id"} or {"endpoint", "tls"?}'),
  })
  .meta({ id: 'Target' });

function keptTarget(asked: z.output<typeof target>): Target {
  if ('upstream_id' in asked) return asked;
  return asked.tls === undefined ? { endpoint: asked.endpoint } : { endpoint: asked.endpoint, tls: asked.tls };
}

const shownHop = z
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

const shownTarget = z
  .union([
    z.object({ upstream_id: z.string() }),
    z.object({
      endpoint: z.string(),
      tls: z.object({ server_name: z.string(), spki_pins_sha256: z.array(z.string()) }).optional(),
    }),
  ])
  .meta({ id: 'ShownTarget' });

export const chainShape: Shape<ChainFields> = {
  name: { asked: name, shown: z.string() },
  description: { asked: description, shown: z.string().nullable(), initial: null },
  enabled: { asked: boolean(), shown: z.boolean(), initial: true },
  payload: { asked: oneOf(payloads), shown: z.enum(payloads) },
  hops: { asked: list(hop.transform(keptHop), 1, limits.fleet.hops), shown: z.array(shownHop) },
  target: { asked: target.transform(keptTarget), shown: shownTarget },
};

/** Everything about a definition that the body alone tells. */
export function checkDefinition(asked: PartialDefinition, ctx: z.core.$RefinementCtx): void {
  for (const { path, message } of definitionProblems(asked)) {
    ctx.issues.push({ code: 'custom', path: [...path], message, input: undefined });
  }
}

export const shownChain = shownResource('Chain', chainShape, {
  status: z.enum(chainStatuses),
  deployed_version: z.int().nullable(),
  deployed_at: time.nullable(),
});

/** A chain as it is shown. */
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
