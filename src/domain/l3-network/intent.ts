/**
 * The listeners that an enabled L3 network intends: one route for each tunnel. Saved is live, so every route is deployed.
 * Implements `docs/contract/domain.md#l4-chain`, listener intent.
 */
import type { IntendedListener } from '../listeners/intent.js';
import type { FleetView } from '../resource/fleet-view.js';
import type { NetworkState } from './l3-network.js';
import { memberOn, tunnelsOn } from './l3-network.js';

/** The listeners that a network intends on a node; none while it is disabled. */
export function intendedByNetwork(
  _fleet: FleetView,
  network: NetworkState,
  nodeId: string,
): readonly IntendedListener[] {
  if (!network.enabled) return [];
  const nextHop = memberOn(network, nodeId)?.interface_name ?? '';
  return tunnelsOn(network, nodeId)
    .filter((tunnel) => tunnel.listener_node_id === nodeId)
    .map(({ listen_addr, listen_port, context_id }) => ({
      nodeId,
      transport: 'udp',
      listenAddr: listen_addr,
      listenPort: listen_port,
      routes: [
        {
          source: 'l3_network',
          sourceLabel: network.name,
          matchKind: 'l3_context',
          matchValue: String(context_id),
          nextHop,
          resourceId: network.id,
          deployed: true,
        },
      ],
    }));
}
