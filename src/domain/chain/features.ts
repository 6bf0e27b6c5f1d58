/**
 * What the agent of a hop's node must be able to run: how the hop listens, and how it dials the next one or the target.
 * Implements `docs/contract/agent-protocol.md#configuration`, "Features".
 */
import { unreachable } from '../../kernel/errors.js';
import type { FleetView } from '../resource/fleet-view.js';
import type { Feature } from '../snapshot/features.js';
import { upstreamKey } from '../upstream/upstream.js';
import { upstreamOf, type ChainDefinition, type Hop, type Payload } from './chain.js';

type Resources = Pick<FleetView, 'get'>;
type Carrier = Pick<Hop, 'outer' | 'security'>;

/** None for a node without a hop. */
export function featuresOn(fleet: Resources, definition: ChainDefinition, nodeId: string): readonly Feature[] {
  const { payload, hops } = definition;
  const index = hops.findIndex((hop) => hop.node_id === nodeId);
  const hop = hops[index];
  if (hop === undefined) return [];
  const { outer, security, server_names: names = [] } = hop;
  const readsNames = outer === 'tcp' && security === 'raw' && names.length > 0;
  const dialled = featuresOf(payload, hops[index + 1] ?? transportToTarget(fleet, definition));
  return [...(readsNames ? (['tcp_sni'] as const) : featuresOf(payload, hop)), ...dialled];
}

/** The features of a row of the transport table. */
function featuresOf(payload: Payload, { outer, security }: Carrier): readonly Feature[] {
  if (outer === 'quic') return [payload === 'tcp' ? 'quic_reality' : 'quic_datagram'];
  const fake = outer === 'fake_tcp' ? (['fake_tcp'] as const) : [];
  switch (security) {
    case 'raw':
      return [`${payload}_raw`, ...fake];
    case 'tls':
    case 'reality':
      return [`tcp_${security}`];
    case 'noise':
      return ['udp_enc', ...fake];
    default:
      return unreachable(security);
  }
}

function transportToTarget(fleet: Resources, definition: ChainDefinition): Carrier {
  const { payload, target } = definition;
  const { tls, reality } = 'endpoint' in target ? target : (fleet.get(upstreamKey, upstreamOf(definition)) ?? {});
  if (reality) return { outer: reality.outer, security: 'reality' };
  return { outer: payload, security: tls ? 'tls' : 'raw' };
}
