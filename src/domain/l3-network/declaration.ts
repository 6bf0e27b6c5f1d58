/**
 * The declaration of L3 networks: the rules of their definitions, the assignments of new and edited ones (from
 * `assign.ts`), and the listeners of an enabled network, one route per tunnel. A saved network is live, so every route is
 * deployed. Implements `docs/contract/domain.md#l3-network` and `#l4-chain`, listener intent.
 */
import { limits } from '../../kernel/limits.js';
import { credentialKey, type CredentialState } from '../credential/credential.js';
import { listenersOf } from '../listeners/claims.js';
import { nodeKey } from '../node/node.js';
import { ownerOf, describeOwner, splitOwner } from '../references/references.js';
import type { Compiled, Indexed } from '../resource/declaration.js';
import { defineResource } from '../resource/define-resource.js';
import type { FleetView } from '../resource/fleet-view.js';
import { refuse, type Refusal } from '../resource/refusal.js';
import { claimsOfNetwork, claimOfTunnel } from './claims.js';
import {
  networkKey,
  nodesOfTunnels,
  tunnelsOn,
  memberOn,
  type NetworkDefinition,
  type NetworkRequest,
  type NetworkState,
} from './l3-network.js';
import { networkBound, networkRulesOn, nodesWithOtherRules, peerEndpoint, tunnelDialledBy } from './rules.js';
import { namesOfCredential } from '../credential/material.js';
import { collisionOf, collisionSentence } from '../listeners/collisions.js';
import type { SaveRules } from '../resource/lifecycle-decisions.js';
import { firstProblem, unknownNode } from '../resource/rules.js';
import { identifiedTunnels, namedMembers, nextNetworkId, overlapBetween } from './assign.js';
import { definitionProblems } from './definition.js';
import type { IntendedListener } from '../listeners/intent.js';

type Request<T extends NetworkRequest['type']> = Extract<NetworkRequest, { readonly type: T }>;

/** The definition of a new network with everything assigned; undefined when every number has been used. */
function assigned(
  fleet: FleetView,
  { type: _, id, members, tunnels, ...settings }: Request<'CreateL3Network'>,
): NetworkDefinition | undefined {
  const network_id = nextNetworkId(fleet);
  if (network_id === undefined) return undefined;
  return {
    ...settings,
    network_id,
    members: namedMembers(network_id, members),
    tunnels: identifiedTunnels(fleet, { id, ...settings }, tunnels),
  };
}

/** The lists of an edit with everything assigned. */
function reassigned(
  fleet: FleetView,
  network: NetworkState,
  { members, tunnels, credential_id, server_name }: Request<'UpdateL3Network'>,
): Partial<Pick<NetworkDefinition, 'members' | 'tunnels'>> {
  const edited = {
    id: network.id,
    credential_id: credential_id ?? network.credential_id,
    server_name: server_name ?? network.server_name,
  };
  return {
    ...(members === undefined ? {} : { members: namedMembers(network.network_id, members) }),
    ...(tunnels === undefined ? {} : { tunnels: identifiedTunnels(fleet, edited, tunnels, network.tunnels) }),
  };
}

const networkRules: SaveRules<NetworkState> = {
  invalid: (fleet, next) => firstProblem(definitionProblems(next)) ?? referenceRefusal(fleet, next),
  conflict: (fleet, next, before) =>
    // Unchanged members cannot overlap.
    (next.members === before?.members ? undefined : overlapRefusal(fleet, next)) ??
    (next.enabled ? liveRefusal(fleet, next) : undefined),
};

function overlapRefusal(fleet: FleetView, { members }: NetworkState): Refusal | undefined {
  return conflict(overlapBetween(members, (id) => fleet.nameOf(nodeKey.type, id) ?? id));
}

function invalid(message: string): Refusal {
  return { code: 'invalid_request', message };
}

function conflict(message: string | undefined): Refusal | undefined {
  return message === undefined ? undefined : { code: 'conflict', message };
}

/** The nodes must exist, and the credential must be of type reality and have the server name. */
function referenceRefusal(fleet: FleetView, network: NetworkState): Refusal | undefined {
  const credential = fleet.get(credentialKey, network.credential_id);
  if (credential === undefined) {
    return invalid(`credential_id: expected the id of a credential, there is no credential ${network.credential_id}`);
  }
  if (credential.key_type !== 'reality') {
    return invalid(
      `credential_id: expected a credential of type reality, "${credential.name}" is of type ${credential.key_type}`,
    );
  }
  if (!namesOfCredential(fleet, credential.id).includes(network.server_name)) {
    return invalid(`server_name: expected one of the server_names of the credential "${credential.name}"`);
  }
  return unknownNode(fleet, 'members', network.members);
}

/**
 * Conflicts that keep a network from being live: taken listeners, context ids and interfaces, and listeners that nobody can
 * dial.
 */
function liveRefusal(fleet: FleetView, network: NetworkState): Refusal | undefined {
  return (
    conflict(listenerTaken(fleet, network)) ??
    conflict(interfaceTaken(fleet, network)) ??
    conflict(undialable(fleet, network))
  );
}

function listenerTaken(fleet: FleetView, network: NetworkState): string | undefined {
  for (const [index, tunnel] of network.tunnels.entries()) {
    const collision = collisionOf(fleet, claimOfTunnel(network, tunnel, tunnel.context_id));
    if (collision === undefined) continue;
    const withoutId = collisionOf(fleet, claimOfTunnel(network, tunnel, null));
    if (withoutId !== undefined) return collisionSentence(fleet, withoutId, `tunnels[${index}].listen_port`);
    const sentence = collisionSentence(fleet, collision, `tunnels[${index}].context_id`);
    return `${sentence}, which uses the context id ${tunnel.context_id} there`;
  }
  return undefined;
}

function undialable(fleet: FleetView, network: NetworkState): string | undefined {
  for (const [index, tunnel] of network.tunnels.entries()) {
    if (peerEndpoint(fleet, tunnel) !== '') continue;
    const node = fleet.nameOf(nodeKey.type, tunnel.listener_node_id) ?? tunnel.listener_node_id;
    return (
      `tunnels[${index}].listener_node_id: the node "${node}" has no known address for the connector to dial; ` +
      'set its address, or let its agent report one'
    );
  }
  return undefined;
}

/** The first interface name that another enabled network uses on the same node, as a sentence. */
function interfaceTaken(fleet: FleetView, network: NetworkState): string | undefined {
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

/** The listeners that an enabled network intends on a node. */
function intendedByNetwork(_fleet: FleetView, network: NetworkState, nodeId: string): readonly IntendedListener[] {
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
          deployed: true,
        },
      ],
    }));
}

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
  features: (_fleet, { enabled }) => (enabled ? ['l3'] : []),
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
  dialledBy: (network, ruleId) => tunnelDialledBy(network, ruleId)?.listener_node_id,
  // A tunnel carries packets both ways; its link starts at the side that dials, as in a chain.
  linksFrom(fleet, network, nodeId) {
    if (!network.enabled) return [];
    const dialled = tunnelsOn(network, nodeId).filter(({ connector_node_id }) => connector_node_id === nodeId);
    return dialled.map((tunnel) => ({ toNodeId: tunnel.listener_node_id, endpoint: peerEndpoint(fleet, tunnel) }));
  },
};

/** The server name by which connectors know the listeners must stay in the credential. */
function objectionTo({ server_name }: NetworkState, type: string, edited: { readonly id: string }): string | undefined {
  if (type !== credentialKey.type || (edited as CredentialState).server_names.includes(server_name)) return undefined;
  return `server_names: expected "${server_name}" among them while {} has it as server_name`;
}

const network = defineResource<NetworkDefinition>()('l3_network', {
  // The field of events that holds the id is `l3_network_id`: `network_id` is the number of the network.
  noun: 'L3Network',
  fields: ['name', 'enabled', 'network_id', 'mtu', 'credential_id', 'server_name', 'members', 'tunnels'],
  ...networkRules,
  indexed,
  compiled,
  objectionTo,
  touches: nodesWithOtherRules,
});

/** A restore needs no assignment: its command has the number, which no other network ever had, and the context ids. */
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
