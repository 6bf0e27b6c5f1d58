/** An L4 chain as it is shown. Not the routes (`chains.ts`). Implements `docs/contract/rest.md#l4-chains`. */
import { z } from 'zod';
import type { ChainState, Hop, Target } from '../../commands/handlers-port.js';
import { chainStatus } from '../../projections/derived.js';
import { time, timestamps } from './shared-schemas.js';

const hopSchema = z
  .object({
    node_id: z.string(),
    listen_addr: z.string(),
    listen_port: z.int(),
    outer: z.enum(['tcp', 'udp', 'quic', 'fake_tcp']),
    security: z.enum(['raw', 'tls', 'reality', 'noise']),
    server_names: z.array(z.string()).optional(),
    credential_id: z.string().optional(),
    max_streams: z.int().optional(),
    dial_addr: z.string().optional(),
  })
  .meta({ id: 'ShownHop' });

const targetSchema = z
  .union([
    z.object({ upstream_id: z.string() }),
    z.object({
      endpoint: z.string(),
      tls: z.object({ server_name: z.string(), spki_pins_sha256: z.array(z.string()) }).optional(),
    }),
  ])
  .meta({ id: 'ShownTarget' });

export const chainSchema = z
  .object({
    id: z.string(),
    name: z.string(),
    description: z.string().nullable(),
    enabled: z.boolean(),
    payload: z.enum(['tcp', 'udp']),
    hops: z.array(hopSchema),
    target: targetSchema,
    status: z.enum(['draft', 'deployed', 'modified', 'disabled']),
    deployed_version: z.int().nullable(),
    deployed_at: time.nullable(),
    ...timestamps,
  })
  .meta({ id: 'Chain' });
export type ChainView = z.output<typeof chainSchema>;

export function chainView(state: ChainState): ChainView {
  return {
    id: state.id,
    name: state.name,
    description: state.description,
    enabled: state.enabled,
    payload: state.payload,
    hops: state.hops.map(shownHop),
    target: shownTarget(state.target),
    status: chainStatus(state),
    deployed_version: state.deployed?.chain_version ?? null,
    deployed_at: state.deployed?.at ?? null,
    created_at: state.created_at,
    updated_at: state.updated_at,
    version: state.version,
  };
}

function shownHop(hop: Hop): z.output<typeof hopSchema> {
  const { server_names, ...rest } = hop;
  return { ...rest, ...(server_names === undefined ? {} : { server_names: [...server_names] }) };
}

function shownTarget(target: Target): z.output<typeof targetSchema> {
  if ('upstream_id' in target) return { upstream_id: target.upstream_id };
  const { endpoint, tls } = target;
  if (tls === undefined) return { endpoint };
  return { endpoint, tls: { server_name: tls.server_name, spki_pins_sha256: [...tls.spki_pins_sha256] } };
}
