/**
 * The rules that a chain's definition must keep by itself: the combinations of payload, outer and security that this release
 * supports, and the fields that go with them. REST checks bodies with them, `decide.ts` whole definitions. Not whether the
 * nodes and the upstream exist. Implements `docs/contract/domain.md#l4-chain`.
 */
import { repeatedNodes } from '../node/hops.js';
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

/** A definition, or the fields of one that an edit sends. Optional fields of a hop may be present and undefined. */
export interface PartialDefinition {
  readonly payload?: Payload | undefined;
  readonly hops?: readonly HopToCheck[] | undefined;
  readonly target?: Target | { readonly [K in keyof Target]?: Target[K] | undefined } | undefined;
}

type HopToCheck = Pick<Hop, 'node_id' | 'outer' | 'security'> & {
  readonly [K in 'server_names' | 'credential_id' | 'max_streams']?: Hop[K] | undefined;
};

interface DefinitionProblem {
  /** For example `['hops', 1, 'outer']`. */
  readonly path: readonly (string | number)[];
  readonly message: string;
}

/** The problems of a definition: at most one per hop, and one more for a hop that repeats a node. */
export function* definitionProblems({ payload, hops = [], target }: PartialDefinition): Generator<DefinitionProblem> {
  for (const { index, earlier } of repeatedNodes(hops)) {
    const message = `expected each node at most once in a chain; this one is already hops[${earlier}]`;
    yield { path: ['hops', index, 'node_id'], message };
  }
  for (const [index, hop] of hops.entries()) {
    const problem = hopProblem(payload, hop);
    if (problem !== undefined) yield { ...problem, path: ['hops', index, ...problem.path] };
  }
  if (payload === 'udp' && target !== undefined && 'tls' in target && target.tls !== undefined) {
    yield { path: ['target', 'tls'], message: 'expected none when payload is udp' };
  }
}

function hopProblem(payload: Payload | undefined, hop: HopToCheck): DefinitionProblem | undefined {
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
