/**
 * The claims of an L3 network: one per tunnel, on the UDP listener of its listening end.
 * Implements `docs/contract/domain.md#listeners-and-collisions`.
 */
import { plainIp } from '../../kernel/addresses.js';
import type { Claim } from '../listeners/claims.js';
import { ownerOf } from '../references/references.js';
import { networkKey, type NetworkState, type RequestedTunnel } from './l3-network.js';

type Claimant = Pick<NetworkState, 'id' | 'credential_id' | 'server_name'>;

/** @param contextId null to claim only the listener */
export function claimOfTunnel(network: Claimant, tunnel: RequestedTunnel, contextId: number | null): Claim {
  return {
    owner: ownerOf(networkKey.type, network.id),
    nodeId: tunnel.listener_node_id,
    transport: 'udp',
    addr: plainIp(tunnel.listen_addr),
    port: tunnel.listen_port,
    family: 'l3',
    values: contextId === null ? [] : [String(contextId)],
    tunnel: { credentialId: network.credential_id, serverName: network.server_name },
  };
}

/** The claims of an enabled network, in the order of its tunnels. */
export function claimsOfNetwork(network: NetworkState): readonly Claim[] {
  if (!network.enabled) return [];
  return network.tunnels.map((tunnel) => claimOfTunnel(network, tunnel, tunnel.context_id));
}
