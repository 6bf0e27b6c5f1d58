/**
 * Names of interfaces on a node: a node has one interface for each network, so no two enabled networks may give it the same
 * name there. Implements `docs/contract/domain.md#l3-network`.
 */
import { describeOwner, splitOwner } from '../references/references.js';
import type { FleetView } from '../resource/fleet-view.js';
import type { NetworkState } from './l3-network.js';
import { memberOn, networkKey } from './l3-network.js';

/** The first name of an interface that another enabled network has on the same node, as a sentence. */
export function interfaceTaken(fleet: FleetView, network: NetworkState): string | undefined {
  for (const [index, { node_id, interface_name }] of network.members.entries()) {
    for (const owner of fleet.referrersOf('node', node_id)) {
      const { type, id } = splitOwner(owner);
      const other = type === networkKey.type && id !== network.id ? fleet.get(networkKey, id) : undefined;
      if (other?.enabled !== true || memberOn(other, node_id)?.interface_name !== interface_name) continue;
      const node = fleet.nameOf('node', node_id) ?? node_id;
      return (
        `members[${index}].interface_name: the interface "${interface_name}" on node "${node}" is already that of ` +
        `${describeOwner(fleet, owner)}; expected another name`
      );
    }
  }
  return undefined;
}
