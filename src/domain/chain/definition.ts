/**
 * The rules of a chain's definition by itself: the combinations of payload, outer and security, and the fields that they
 * allow. REST checks bodies, `decide.ts` whole definitions. `references.ts` checks the resources that it refers to.
 * Implements `docs/contract/domain.md#l4-chain`.
 */
import { repeatedNodes } from '../node/hops.js';
import type { Problem } from '../resource/rules.js';
import type { EndpointTarget, Hop, Payload, Target } from './chain.js';
import { firstExactName, isWildcard } from './names.js';
import { allowedCombinations, keyTypeOf, transportOf } from './transports.js';

/** A definition, or the fields of one that an edit sends. Optional fields of a hop may be present and undefined. */
export interface PartialDefinition {
  readonly payload?: Payload | undefined;
  readonly hops?: readonly HopToCheck[] | undefined;
  readonly target?: Target | EndpointTargetToCheck | undefined;
}

type HopToCheck = Pick<Hop, 'node_id' | 'outer' | 'security'> & {
  readonly [K in 'server_names' | 'credential_id' | 'max_streams']?: Hop[K] | undefined;
};

/** Optional fields may be present and undefined. */
type EndpointTargetToCheck = { readonly [K in keyof EndpointTarget]: EndpointTarget[K] | undefined };

/** At most one problem per hop, and one more for a hop that repeats a node. */
export function* definitionProblems({ payload, hops = [], target }: PartialDefinition): Generator<Problem> {
  for (const { index, earlier } of repeatedNodes(hops)) {
    const message = `expected each node at most once in a chain; this one is already hops[${earlier}]`;
    yield { path: ['hops', index, 'node_id'], message };
  }
  const firstTls = hops.findIndex(({ security }) => security === 'tls');
  for (const [index, hop] of hops.entries()) {
    const problem =
      hopProblem(payload, hop) ??
      (index > 0 ? dialledProblem(hop, index) : undefined) ??
      (firstTls !== -1 && index > firstTls ? behindTlsProblem(hop, firstTls) : undefined);
    if (problem !== undefined) yield { ...problem, path: ['hops', index, ...problem.path] };
  }
  if (target !== undefined && 'endpoint' in target) yield* targetProblems(payload, target);
}

function* targetProblems(
  payload: Payload | undefined,
  { tls, reality }: Pick<EndpointTargetToCheck, 'tls' | 'reality'>,
): Generator<Problem> {
  if (tls !== undefined && reality !== undefined) {
    yield { path: ['target', 'reality'], message: 'expected none beside tls' };
  }
  if (payload !== 'udp') return;
  if (tls !== undefined) yield { path: ['target', 'tls'], message: 'expected none when payload is udp' };
  if (reality?.outer === 'tcp') {
    yield { path: ['target', 'reality', 'outer'], message: 'expected "quic" when payload is udp' };
  }
}

function hopProblem(payload: Payload | undefined, hop: HopToCheck): Problem | undefined {
  const { outer, security, server_names: names = [] } = hop;
  const transport = transportOf(payload, hop);
  if (transport === undefined) {
    return { path: [], message: `expected one of the combinations ${allowedCombinations}` };
  }
  const keyType = keyTypeOf(security);
  if (keyType === null && hop.credential_id !== undefined) {
    return { path: ['credential_id'], message: `expected none with security ${security}` };
  }
  if (keyType !== null && hop.credential_id === undefined) {
    const message = `required, expected the id of a credential of key_type ${keyType} with security ${security}`;
    return { path: ['credential_id'], message };
  }
  if (hop.max_streams !== undefined && outer !== 'quic') {
    return { path: ['max_streams'], message: 'expected none unless outer is quic' };
  }
  if (names.length > 0 && transport.serverNames === 'none') {
    return { path: ['server_names'], message: `expected none with outer ${outer} and security ${security}` };
  }
  const wildcard = names.findIndex(isWildcard);
  if (wildcard !== -1 && transport.serverNames === 'exact') {
    return {
      path: ['server_names', wildcard],
      message: `expected a name without a wildcard with security ${security}`,
    };
  }
  return undefined;
}

/** A TLS hop is dialled by a name. `references.ts` checks the names of its certificate. */
function dialledProblem({ security, server_names: names = [] }: HopToCheck, index: number): Problem | undefined {
  if (security !== 'tls' || names.length === 0 || firstExactName(names) !== undefined) return undefined;
  return { path: ['server_names'], message: expectedExactName(index) };
}

/** @param index of the hop that is dialled */
export function expectedExactName(index: number): string {
  return `expected at least one name without a wildcard, by which hops[${index - 1}] dials this hop`;
}

/** A TLS hop ends the client's handshake, so later hops have no name to read. */
function behindTlsProblem({ security, server_names: names = [] }: HopToCheck, tlsIndex: number): Problem | undefined {
  if (security !== 'raw' || names.length === 0) return undefined;
  const message = `expected none with security raw after hops[${tlsIndex}], which ends the TLS that names are read from`;
  return { path: ['server_names'], message };
}
