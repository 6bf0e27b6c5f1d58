/** The claims of a chain on the listeners of its nodes. Implements `docs/contract/domain.md#listeners-and-collisions`. */
import type { Claim, ClaimFamily } from '../listeners/claims.js';
import { ownerOf } from '../references/references.js';
import type { ChainState, Hop, Payload } from './chain.js';
import { chainKey, definitionsOf } from './chain.js';

/** QUIC is udp, FAKE_TCP is tcp. */
export function hopTransport(hop: Pick<Hop, 'outer'>): 'tcp' | 'udp' {
  return hop.outer === 'tcp' || hop.outer === 'fake_tcp' ? 'tcp' : 'udp';
}

function familyOf(payload: Payload, hop: Hop): { readonly family: ClaimFamily; readonly values: readonly string[] } {
  if (hop.outer === 'fake_tcp') return { family: 'exclusive', values: [] };
  const names = hop.server_names ?? [];
  if (payload === 'tcp' && names.length > 0) return { family: 'names', values: names };
  return { family: 'raw', values: [] };
}

/** The current and the deployed listeners of an enabled chain; none of a disabled one. */
export function claimsOfChain(chain: ChainState): readonly Claim[] {
  if (!chain.enabled) return [];
  return definitionsOf(chain).flatMap((definition) =>
    definition.hops.map((hop): Claim => ({
      owner: ownerOf(chainKey.type, chain.id),
      nodeId: hop.node_id,
      transport: hopTransport(hop),
      addr: hop.listen_addr,
      port: hop.listen_port,
      ...familyOf(definition.payload, hop),
    })),
  );
}
