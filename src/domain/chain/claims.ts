/** The claims of a chain on the listeners of its nodes. Implements `docs/contract/domain.md#listeners-and-collisions`. */
import { plainIp } from '../../kernel/addresses.js';
import { x25519Material } from '../credential/material.js';
import type { Claim } from '../listeners/claims.js';
import { ownerOf } from '../references/references.js';
import type { FleetView } from '../resource/fleet-view.js';
import { chainKey, definitionsOf, type ChainState, type Hop } from './chain.js';
import { effectiveNames } from './names.js';
import { listenerTransport } from './transports.js';

/** How a hop shares its listener: by server names, by its public key, or not at all. */
function familyOf(fleet: Pick<FleetView, 'get'>, hop: Hop): Pick<Claim, 'family' | 'values'> {
  if (hop.outer === 'fake_tcp') return { family: 'exclusive', values: [] };
  if (hop.security === 'noise') {
    const publicKey = x25519Material(fleet, hop.credential_id)?.public_key;
    return { family: 'local_key', values: publicKey === undefined ? [] : [publicKey] };
  }
  const names = effectiveNames(fleet, hop);
  return hop.security === 'raw' && names.length === 0
    ? { family: 'raw', values: [] }
    : { family: 'names', values: names };
}

/** The current and the deployed listeners of an enabled chain; none of a disabled one. */
export function claimsOfChain(chain: ChainState, fleet: Pick<FleetView, 'get'>): readonly Claim[] {
  if (!chain.enabled) return [];
  return definitionsOf(chain).flatMap(({ hops }) =>
    hops.map((hop): Claim => ({
      owner: ownerOf(chainKey.type, chain.id),
      nodeId: hop.node_id,
      transport: listenerTransport(hop),
      addr: plainIp(hop.listen_addr),
      port: hop.listen_port,
      ...familyOf(fleet, hop),
    })),
  );
}
