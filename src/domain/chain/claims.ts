/** What a chain claims on the listeners of its nodes. Implements `docs/contract/domain.md#listeners-and-collisions`. */
import type { Claim, ClaimFamily } from '../listeners/claims.js';
import { ownerOf } from '../references/references.js';
import type { ChainState, Hop, Payload } from './chain.js';
import { chainKey } from './chain.js';
import { definitionsOf } from './status.js';

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

/** A chain claims its current and its deployed listeners while it is enabled. */
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
