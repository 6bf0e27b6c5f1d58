/**
 * What a chain's definition may be, seen alone: the allowed combinations of payload, outer and security, and which
 * fields belong to which. Not whether what it names exists. The one place of these rules: REST checks bodies with it.
 * Implements `docs/contract/domain.md#l4-chain` for the transports of this release.
 */
import type { Hop, Outer, Payload, Security, Target } from './chain.js';

interface Combination {
  readonly payload: Payload;
  readonly outer: Outer;
  readonly security: Security;
  /** Whether the hop may carry `server_names`. */
  readonly serverNames: boolean;
}

const combinations: readonly Combination[] = [
  { payload: 'tcp', outer: 'tcp', security: 'raw', serverNames: true },
  { payload: 'udp', outer: 'udp', security: 'raw', serverNames: false },
  { payload: 'udp', outer: 'fake_tcp', security: 'raw', serverNames: false },
];

const allowed = combinations
  .map((one) => `payload ${one.payload} with outer ${one.outer} and security ${one.security}`)
  .join('; ');

/** A definition, or what an edit sends of one; optional fields of a hop may be there and undefined. */
export interface PartialDefinition {
  readonly payload?: Payload | undefined;
  readonly hops?: readonly JudgedHop[] | undefined;
  readonly target?: Target | { readonly [K in keyof Target]?: Target[K] | undefined } | undefined;
}

type JudgedHop = Pick<Hop, 'node_id' | 'outer' | 'security'> & {
  readonly [K in 'server_names' | 'credential_id' | 'max_streams']?: Hop[K] | undefined;
};

export interface DefinitionProblem {
  /** For example `['hops', 1, 'outer']`. */
  readonly path: readonly (string | number)[];
  readonly message: string;
}

/** The rules that a definition breaks, at most one per hop and one more for a node that is there twice. */
export function* definitionProblems({ payload, hops = [], target }: PartialDefinition): Generator<DefinitionProblem> {
  const indexes = new Map<string, number>();
  for (const [index, hop] of hops.entries()) {
    const earlier = indexes.get(hop.node_id);
    if (earlier !== undefined) {
      const message = `expected a node once in a chain, it is hops[${earlier}] already`;
      yield { path: ['hops', index, 'node_id'], message };
    }
    indexes.set(hop.node_id, index);
    const problem = hopProblem(payload, hop);
    if (problem !== undefined) yield { ...problem, path: ['hops', index, ...problem.path] };
  }
  if (payload === 'udp' && target !== undefined && 'tls' in target && target.tls !== undefined) {
    yield { path: ['target', 'tls'], message: 'expected none when payload is udp' };
  }
}

function hopProblem(payload: Payload | undefined, hop: JudgedHop): DefinitionProblem | undefined {
  const { outer, security } = hop;
  const combination = combinations.find(
    (one) => one.outer === outer && one.security === security && (payload === undefined || one.payload === payload),
  );
  if (combination === undefined) {
    return { path: [], message: `expected one of the combinations of this release: ${allowed}` };
  }
  if (hop.credential_id !== undefined) {
    return { path: ['credential_id'], message: `expected none with security ${security}` };
  }
  if (hop.max_streams !== undefined) {
    return { path: ['max_streams'], message: 'expected none unless outer is quic' };
  }
  if ((hop.server_names ?? []).length > 0 && !combination.serverNames) {
    return { path: ['server_names'], message: `expected none with outer ${outer} and security ${security}` };
  }
  return undefined;
}
