/**
 * Bodies of L4 chains: hops, target, and which combinations of payload, outer and security this release takes. What
 * depends on other resources or, for a PUT, on the stored payload is decided behind the commands port.
 * Implements `docs/contract/domain.md#l4-chain`.
 */
import { z } from 'zod';
import type { Hop, Outer, Payload, Security, Target } from '../../commands/handlers-port.js';
import { limits } from '../../kernel/limits.js';
import {
  body,
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
import { expected } from './validation.js';

interface Combination {
  readonly payload: Payload;
  readonly outer: Outer;
  readonly security: Security;
}

const allowed: readonly Combination[] = [
  { payload: 'tcp', outer: 'tcp', security: 'raw' },
  { payload: 'udp', outer: 'udp', security: 'raw' },
  { payload: 'udp', outer: 'fake_tcp', security: 'raw' },
];

const allowedSentence = `expected one of the combinations of this release: ${allowed
  .map((one) => `payload ${one.payload} with outer ${one.outer} and security ${one.security}`)
  .join('; ')}`;

const hop = object({
  node_id: uuid,
  listen_addr: ip.optional().meta({ default: '0.0.0.0' }),
  listen_port: port,
  outer: oneOf(['tcp', 'udp', 'quic', 'fake_tcp']),
  security: oneOf(['raw', 'tls', 'reality', 'noise']),
  server_names: distinct(namePattern).optional(),
  credential_id: uuid.optional(),
  max_streams: integer(1, limits.fleet.maxStreams).optional(),
  dial_addr: host.optional(),
}).meta({ id: 'Hop' });
type AskedHop = z.output<typeof hop>;

const target = z
  .union([object({ upstream_id: uuid }), object({ endpoint, tls: upstreamTls.optional() })], {
    error: expected('either {"upstream_id"} or {"endpoint", "tls"?}'),
  })
  .meta({ id: 'Target' });
type AskedTarget = z.output<typeof target>;

const fields = {
  name,
  description: description.optional(),
  enabled: boolean().optional(),
  payload: oneOf(['tcp', 'udp']),
  hops: list(hop, 1, limits.fleet.hops),
  target,
};

interface AskedDefinition {
  readonly payload?: Payload | undefined;
  readonly hops?: readonly AskedHop[] | undefined;
  readonly target?: AskedTarget | undefined;
}

export const createChainBody = body(fields).superRefine(checkDefinition);

export const updateChainBody = body({
  ...fields,
  name: name.optional(),
  payload: fields.payload.optional(),
  hops: fields.hops.optional(),
  target: target.optional(),
}).superRefine(checkDefinition);

/** Everything about a definition that the body alone tells; the first thing wrong of each hop. */
function checkDefinition(asked: AskedDefinition, ctx: z.core.$RefinementCtx): void {
  const seen = new Map<string, number>();
  const refuse = (path: PropertyKey[], message: string): void => {
    ctx.issues.push({ code: 'custom', path, message, input: undefined });
  };
  for (const [index, one] of (asked.hops ?? []).entries()) {
    const first = seen.get(one.node_id);
    if (first !== undefined)
      refuse(['hops', index, 'node_id'], `expected a node once in a chain, it is hops[${first}] already`);
    seen.set(one.node_id, index);
    const problem = hopProblem(one, asked.payload);
    if (problem !== undefined) refuse(['hops', index, ...problem.path], problem.message);
  }
  if (
    asked.payload === 'udp' &&
    asked.target !== undefined &&
    'tls' in asked.target &&
    asked.target.tls !== undefined
  ) {
    refuse(['target', 'tls'], 'expected none when payload is udp');
  }
}

function hopProblem(
  one: AskedHop,
  payload: Payload | undefined,
): { readonly path: readonly string[]; readonly message: string } | undefined {
  const known = allowed.some(
    (row) =>
      row.outer === one.outer && row.security === one.security && (payload === undefined || row.payload === payload),
  );
  if (!known) return { path: [], message: allowedSentence };
  if (one.credential_id !== undefined && one.security === 'raw') {
    return { path: ['credential_id'], message: 'expected none with security raw' };
  }
  if (one.max_streams !== undefined && one.outer !== 'quic') {
    return { path: ['max_streams'], message: 'expected none unless outer is quic' };
  }
  if ((one.server_names ?? []).length > 0 && one.outer !== 'tcp') {
    return { path: ['server_names'], message: `expected none with outer ${one.outer} and security raw` };
  }
  return undefined;
}

/** A hop as it is kept and shown: unset fields omitted, defaults there. */
export function keptHop(asked: AskedHop): Hop {
  return {
    node_id: asked.node_id,
    listen_addr: asked.listen_addr ?? '0.0.0.0',
    listen_port: asked.listen_port,
    outer: asked.outer,
    security: asked.security,
    ...(asked.server_names === undefined || asked.server_names.length === 0
      ? {}
      : { server_names: asked.server_names }),
    ...(asked.credential_id === undefined ? {} : { credential_id: asked.credential_id }),
    ...(asked.max_streams === undefined ? {} : { max_streams: asked.max_streams }),
    ...(asked.dial_addr === undefined ? {} : { dial_addr: asked.dial_addr }),
  };
}

export function keptTarget(asked: AskedTarget): Target {
  if ('upstream_id' in asked) return { upstream_id: asked.upstream_id };
  return asked.tls === undefined ? { endpoint: asked.endpoint } : { endpoint: asked.endpoint, tls: asked.tls };
}
