/** The declaration of L3 networks. */
import { credentialKey } from '../credential/credential.js';
import type { CredentialState } from '../credential/credential.js';
import { listenersOf } from '../listeners/claims.js';
import { nodeKey } from '../node/node.js';
import { ownerOf } from '../references/references.js';
import { entryByEntry, eventAudit, fieldChanges } from '../resource/audit-change.js';
import type { Compiled, Indexed, Resource } from '../resource/declaration.js';
import { lifecycleAudit } from '../resource/lifecycle-audit.js';
import { lifecycleFold } from '../resource/lifecycle-fold.js';
import { lifecycleUndo } from '../resource/undo.js';
import { claimsOfNetwork } from './claims.js';
import { decideNetwork } from './decide.js';
import { intendedByNetwork } from './intent.js';
import type { NetworkCommand, NetworkEvent, NetworkState } from './l3-network.js';
import { networkFields, networkKey, nodesOfTunnels, tunnelsOn } from './l3-network.js';
import { networkRulesOn, nodesWithOtherRules, peerEndpoint } from './rules.js';
import { networkBound } from './size.js';

const audit = lifecycleAudit(networkFields);
const undo = lifecycleUndo('l3_network', 'L3Network', 'l3_network');
const evolve = lifecycleFold<NetworkState, 'L3Network', 'l3_network'>('L3Network', 'l3_network');

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

export const l3Network: Resource<'l3_network', 'L3Network', 'l3_network', NetworkState, NetworkEvent, NetworkCommand> =
  {
    type: 'l3_network',
    noun: 'L3Network',
    // The field of events that holds the id is `l3_network_id`: `network_id` is the number of the network.
    singular: 'l3_network',
    fields: networkFields,
    decide: decideNetwork,
    evolve,
    indexed,
    compiled,
    objectionTo,
    events: {
      L3NetworkCreated: {
        schemaVersion: 1,
        audit: audit.created,
        undo: undo.created,
        touches: (fleet, event, context) => nodesWithOtherRules(fleet, undefined, evolve(undefined, event, context)),
      },
      L3NetworkUpdated: {
        schemaVersion: 1,
        audit: ({ data }) =>
          eventAudit(
            'update',
            fieldChanges(data.changes).flatMap(entryByEntry('members')).flatMap(entryByEntry('tunnels')),
          ),
        undo: undo.updated,
        touches(fleet, event, context) {
          const before = fleet.get(networkKey, event.data.l3_network_id);
          return nodesWithOtherRules(fleet, before, evolve(before, event, context));
        },
      },
      L3NetworkDeleted: {
        schemaVersion: 1,
        audit: audit.deleted,
        undo: undo.deleted,
        touches: (fleet, { data }) => nodesWithOtherRules(fleet, fleet.get(networkKey, data.l3_network_id), undefined),
      },
      L3NetworkRestored: {
        schemaVersion: 1,
        audit: audit.restored,
        undo: undo.restored,
        touches: (fleet, event, context) => nodesWithOtherRules(fleet, undefined, evolve(undefined, event, context)),
      },
    },
  };
