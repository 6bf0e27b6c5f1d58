/** An upper bound of a network's part of a snapshot. Implements `docs/contract/domain.md#scale-the-model-is-built-for`. */
import { credentialAt } from '../credential/credential.js';
import type { FleetView } from '../resource/fleet-view.js';
import { listBound, ruleBytes, textBound } from '../snapshot/bound.js';
import type { NetworkState } from './l3-network.js';
import { memberOn, tunnelsOn } from './l3-network.js';

/** In bytes; never less than what is sent. */
export function networkBound(fleet: FleetView, network: NetworkState, nodeId: string): number {
  const own = memberOn(network, nodeId);
  if (!network.enabled || own === undefined) return 0;
  const credential = credentialAt(fleet, network.credential_id);
  const eachRule =
    ruleBytes +
    // In the rule and in its origin.
    2 * textBound(network.name) +
    textBound(network.server_name) +
    textBound(credential?.target_host ?? '') +
    listBound(credential?.short_ids) +
    listBound(own.addresses) +
    listBound(own.features);
  let sum = 0;
  for (const { listener_node_id, connector_node_id } of tunnelsOn(network, nodeId)) {
    const other = memberOn(network, listener_node_id === nodeId ? connector_node_id : listener_node_id);
    // The routes of the other side are in `routes` and in `allowed_sources`.
    sum += eachRule + listBound(other?.addresses) + 2 * listBound(other?.routes);
  }
  return sum;
}
