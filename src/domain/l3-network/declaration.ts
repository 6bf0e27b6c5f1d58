/** The declaration of L3 networks. */
import { limits } from '../../kernel/limits.js';
import { credentialKey } from '../credential/credential.js';
import type { CredentialState } from '../credential/credential.js';
import { listenersOf } from '../listeners/claims.js';
import { nodeKey } from '../node/node.js';
import { ownerOf } from '../references/references.js';
import type { Compiled, Indexed } from '../resource/declaration.js';
import { defineResource } from '../resource/define-resource.js';
import type { FleetView } from '../resource/fleet-view.js';
import { refuse } from '../resource/refusal.js';
import { claimsOfNetwork } from './claims.js';
import { assigned, networkRules, reassigned } from './decide.js';
import { intendedByNetwork } from './intent.js';
import type { NetworkDefinition, NetworkRequest, NetworkState } from './l3-network.js';
import { networkKey, nodesOfTunnels, tunnelsOn } from './l3-network.js';
import { networkBound, networkRulesOn, nodesWithOtherRules, peerEndpoint } from './rules.js';

const indexed: Indexed<NetworkState> = {
  dependsOn: ['enabled', 'credential_id', 'server_name', 'members', 'tunnels'],
  references: ({ members, credential_id }) => [
    ...members.map(({ node_id }) => ownerOf(nodeKey.type, node_id)),
    ownerOf(credentialKey.type, credential_id),
  ],
  claims: claimsOfNetwork,
  nodes: (network) => (network.enabled ? nodesOfTunnels(network) : []),
};

const compiled: Compiled<NetworkState> = {
  rulesOn: networkRulesOn,
  bound: networkBound,
  intendedOn: intendedByNetwork,
  liveOn: (network, nodeId) => listenersOf(claimsOfNetwork(network), nodeId),
  nodesUsing(network, type, id) {
    const uses = network.enabled && type === credentialKey.type && network.credential_id === id;
    return uses ? nodesOfTunnels(network) : [];
  },
  diallersOf(network, nodeId) {
    if (!network.enabled) return [];
    const dialling = tunnelsOn(network, nodeId).filter(({ listener_node_id }) => listener_node_id === nodeId);
    return [...new Set(dialling.map(({ connector_node_id }) => connector_node_id))];
  },
  // A tunnel carries packets both ways; the link is the way in which it is dialled, as it is between the hops of a chain.
  linksFrom(fleet, network, nodeId) {
    if (!network.enabled) return [];
    const dialled = tunnelsOn(network, nodeId).filter(({ connector_node_id }) => connector_node_id === nodeId);
    return dialled.map((tunnel) => ({ toNodeId: tunnel.listener_node_id, endpoint: peerEndpoint(fleet, tunnel) }));
  },
};

/** The name by which connectors know the listeners must stay one of the credential's. */
function objectionTo({ server_name }: NetworkState, type: string, edited: { readonly id: string }): string | undefined {
  if (type !== credentialKey.type || (edited as CredentialState).server_names.includes(server_name)) return undefined;
  return `server_names: expected "${server_name}" among them while {} has it as server_name`;
}

const network = defineResource<NetworkDefinition>()('l3_network', {
  // The field of events that holds the id is `l3_network_id`: `network_id` is the number of the network.
  noun: 'L3Network',
  fields: ['name', 'enabled', 'network_id', 'mtu', 'credential_id', 'server_name', 'members', 'tunnels'],
  lists: ['members', 'tunnels'],
  ...networkRules,
  indexed,
  compiled,
  objectionTo,
  touches: nodesWithOtherRules,
});

type Request<T extends NetworkRequest['type']> = Extract<NetworkRequest, { readonly type: T }>;

/** A network that comes back has its number and its context ids in the command: no other network ever had that number. */
export const l3Network = {
  ...network,
  decide: {
    ...network.decide,
    CreateL3Network(fleet: FleetView, command: Request<'CreateL3Network'>) {
      const definition = assigned(fleet, command);
      if (definition === undefined) {
        return refuse('conflict', `network_id: every number up to ${limits.fleet.l3.networkIdMax} has been used`);
      }
      return network.decide.CreateL3Network(fleet, { type: command.type, id: command.id, ...definition });
    },
    UpdateL3Network(fleet: FleetView, { members, tunnels, ...command }: Request<'UpdateL3Network'>) {
      const before = fleet.get(networkKey, command.id);
      const lists = before === undefined ? {} : reassigned(fleet, before, { ...command, members, tunnels });
      return network.decide.UpdateL3Network(fleet, { ...command, ...lists });
    },
  },
};
