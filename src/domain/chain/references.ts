/**
 * The rules between a chain's definition and the resources that it refers to, checked when the chain is saved and when one of
 * them is edited. `definition.ts` has the rules of a definition by itself. Implements `docs/contract/domain.md#l4-chain`.
 */
import { unreachable } from '../../kernel/errors.js';
import { credentialKey, type CredentialState } from '../credential/credential.js';
import { unknownNode } from '../resource/rules.js';
import type { FleetView } from '../resource/fleet-view.js';
import type { Refusal } from '../resource/refusal.js';
import { upstreamKey, type UpstreamState } from '../upstream/upstream.js';
import { definitionsOf, upstreamOf, type ChainDefinition, type ChainState, type Hop } from './chain.js';
import { expectedExactName } from './definition.js';
import { effectiveNames, firstExactName } from './names.js';
import { keyTypeOf } from './transports.js';

type Resources = Pick<FleetView, 'get'>;

/** The refusal of a definition with a reference to a resource that does not exist or does not fit. */
export function referenceRefusal(fleet: FleetView, definition: ChainDefinition): Refusal | undefined {
  const unknown = unknownNode(fleet, 'hops', definition.hops);
  if (unknown !== undefined) return unknown;
  for (const [index, hop] of definition.hops.entries()) {
    const message = hopProblem(fleet, hop, index);
    if (message !== undefined) return { code: 'invalid_request', message: `hops[${index}].${message}` };
  }
  const message = targetProblem(fleet, definition);
  return message === undefined ? undefined : { code: 'invalid_request', message: `target.upstream_id: ${message}` };
}

function hopProblem(fleet: Resources, hop: Hop, index: number): string | undefined {
  const keyType = keyTypeOf(hop.security);
  if (keyType === null) return undefined;
  const credential = fleet.get(credentialKey, hop.credential_id);
  if (credential === undefined) {
    return `credential_id: expected the id of a credential, there is no credential ${hop.credential_id ?? ''}`;
  }
  if (credential.key_type !== keyType) {
    return (
      `credential_id: expected a credential of key_type ${keyType} with security ${hop.security}, ` +
      `"${credential.name}" is of key_type ${credential.key_type}`
    );
  }
  const problem = nameProblem(fleet, hop, index);
  switch (problem?.kind) {
    case undefined:
      return undefined;
    case 'unknown':
      return (
        `server_names[${problem.at}]: expected one of the server_names of the credential "${credential.name}", ` +
        `"${hop.server_names?.[problem.at] ?? ''}" is not among them`
      );
    case 'none':
      return `server_names: expected at least one name, the certificate of the credential "${credential.name}" has none`;
    case 'no_exact':
      return `server_names: ${expectedExactName(index)}; those of the credential "${credential.name}" are wildcards`;
    default:
      return unreachable(problem);
  }
}

type NameProblem = { readonly kind: 'unknown'; readonly at: number } | { readonly kind: 'none' | 'no_exact' };

/** The problems of a hop's names, given the names of its credential. */
function nameProblem(resources: Resources, hop: Hop, index: number): NameProblem | undefined {
  if (hop.security !== 'tls' && hop.security !== 'reality') return undefined;
  if (hop.security === 'reality') {
    const known = resources.get(credentialKey, hop.credential_id)?.server_names ?? [];
    const at = (hop.server_names ?? []).findIndex((name) => !known.includes(name));
    if (at !== -1) return { kind: 'unknown', at };
  }
  const names = effectiveNames(resources, hop);
  if (names.length === 0) return { kind: 'none' };
  return index > 0 && firstExactName(names) === undefined ? { kind: 'no_exact' } : undefined;
}

function targetProblem(fleet: Resources, definition: ChainDefinition): string | undefined {
  const upstreamId = upstreamOf(definition);
  if (upstreamId === undefined) return undefined;
  const upstream = fleet.get(upstreamKey, upstreamId);
  if (upstream === undefined) return `expected the id of an l4_upstream, there is no ${upstreamId}`;
  if (definition.payload !== 'udp') return undefined;
  const unfit = withoutDatagrams(upstream);
  return unfit && `expected an l4_upstream without ${unfit} for payload udp, "${upstream.name}" has ${unfit}`;
}

/** What keeps a udp chain from ending in an upstream. */
function withoutDatagrams({ tls, reality }: UpstreamState): string | undefined {
  if (tls !== null) return 'tls';
  return reality?.outer === 'tcp' ? 'reality over tcp' : undefined;
}

/** Why a chain objects to an edit of a resource that its current or deployed definition refers to. */
export function objectionOfChain(chain: ChainState, type: string, edited: { readonly id: string }): string | undefined {
  switch (type) {
    case upstreamKey.type:
      return objectionToUpstream(chain, edited as UpstreamState);
    case credentialKey.type:
      return objectionToCredential(chain, edited as CredentialState);
    default:
      return undefined;
  }
}

function objectionToUpstream(chain: ChainState, edited: UpstreamState): string | undefined {
  if (withoutDatagrams(edited) === undefined) return undefined;
  const endsThere = definitionsOf(chain).some(
    (definition) => definition.payload === 'udp' && upstreamOf(definition) === edited.id,
  );
  if (!endsThere) return undefined;
  return edited.tls === null
    ? 'reality.outer: expected "quic" while the udp chain {} ends in this upstream'
    : 'tls: expected null while the udp chain {} ends in this upstream';
}

// One sentence per problem, for all chains that have it.
const objections: { readonly [K in NameProblem['kind']]: string } = {
  unknown: 'server_names: expected every name that a hop of {} uses',
  none: 'certificate_pem: expected a certificate with DNS names, which hops of {} take their server names from',
  no_exact: 'certificate_pem: expected a certificate with a DNS name without a wildcard, by which {} dials a hop',
};

/** The credential must keep the names of the chain's hops, and an exact one for a hop that is dialled. */
function objectionToCredential(chain: ChainState, edited: CredentialState): string | undefined {
  const asEdited: Resources = { get: <S>() => edited as S };
  for (const { hops } of definitionsOf(chain)) {
    for (const [index, hop] of hops.entries()) {
      if (hop.credential_id !== edited.id) continue;
      const problem = nameProblem(asEdited, hop, index);
      if (problem !== undefined) return objections[problem.kind];
    }
  }
  return undefined;
}
