/**
 * What a chain's definition may be, seen alone: the allowed combinations of payload, outer and security, and which
 * fields belong to which. Not whether what it names exists. Implements the table of `docs/contract/domain.md#l4-chain`, for the
 * transports of this release.
 */
import type { ChainDefinition, Hop, Outer, Payload, Security } from './chain.js';

interface Combination {
  readonly payload: Payload;
  readonly outer: Outer;
  readonly security: Security;
  /** Whether the hop may carry `server_names`. */
  readonly serverNames: boolean;
}

export const combinations: readonly Combination[] = [
  { payload: 'tcp', outer: 'tcp', security: 'raw', serverNames: true },
  { payload: 'udp', outer: 'udp', security: 'raw', serverNames: false },
  { payload: 'udp', outer: 'fake_tcp', security: 'raw', serverNames: false },
];

export interface DefinitionProblem {
  /** JSON path, for example `hops[1].outer`. */
  readonly path: string;
  readonly message: string;
}

const allowed = combinations
  .map(({ payload, outer, security }) => `${payload} over ${outer} with ${security}`)
  .join('; ');

/** The first rule that a definition breaks, or undefined. */
export function definitionProblem(definition: ChainDefinition): DefinitionProblem | undefined {
  const { payload, hops, target } = definition;
  const seen = new Set<string>();
  for (const [index, hop] of hops.entries()) {
    const problem = hopProblem(payload, hop, `hops[${index}]`);
    if (problem !== undefined) return problem;
    if (seen.has(hop.node_id)) {
      return {
        path: `hops[${index}].node_id`,
        message: `the node ${hop.node_id} is in the chain already; a node may be in it at most once`,
      };
    }
    seen.add(hop.node_id);
  }
  if (payload !== 'tcp' && 'endpoint' in target && target.tls !== undefined) {
    return { path: 'target.tls', message: 'expected no tls: it is allowed only when payload is tcp' };
  }
  return undefined;
}

function hopProblem(payload: Payload, hop: Hop, path: string): DefinitionProblem | undefined {
  const { outer, security } = hop;
  const combination = combinations.find((c) => c.payload === payload && c.outer === outer && c.security === security);
  if (combination === undefined) {
    return {
      path,
      message: `payload ${payload} over outer ${outer} with security ${security} is not allowed; allowed: ${allowed}`,
    };
  }
  if (hop.credential_id !== undefined) {
    return { path: `${path}.credential_id`, message: `expected no credential_id: security ${security} takes none` };
  }
  if (hop.max_streams !== undefined) {
    return { path: `${path}.max_streams`, message: 'expected no max_streams: it is for outer quic only' };
  }
  if (hop.server_names !== undefined && !combination.serverNames) {
    return {
      path: `${path}.server_names`,
      message: `expected no server_names: payload ${payload} over outer ${outer} with security ${security} takes none`,
    };
  }
  return undefined;
}
