/** The rules of L3 networks, and the assignments of new and edited ones. Implements `docs/contract/domain.md#l3-network`. */
import { credentialAt } from '../credential/credential.js';
import { namesOfCredential } from '../credential/material.js';
import { collisionOf, collisionSentence } from '../listeners/collisions.js';
import { nodeKey } from '../node/node.js';
import type { FleetView } from '../resource/fleet-view.js';
import type { SaveRules } from '../resource/lifecycle-decisions.js';
import type { Refusal } from '../resource/refusal.js';
import { identifiedTunnels, namedMembers, nextNetworkId } from './assign.js';
import { claimOfTunnel } from './claims.js';
import { definitionProblems } from './definition.js';
import { interfaceTaken } from './interfaces.js';
import type { NetworkDefinition, NetworkRequest, NetworkState } from './l3-network.js';
import { overlapBetween } from './overlaps.js';
import { peerEndpoint } from './rules.js';

type Request<T extends NetworkRequest['type']> = Omit<
  Extract<NetworkRequest, { readonly type: T }>,
  'type' | 'ifMatch'
>;

/** The definition of a new network with everything assigned; undefined when every number has been used. */
export function assigned(
  fleet: FleetView,
  { id, members, tunnels, ...settings }: Request<'CreateL3Network'>,
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

/** The lists of an edit, with their new entries' names and ids. */
export function reassigned(
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

export const networkRules: SaveRules<NetworkState> = {
  invalid: (fleet, next) => definitionRefusal(next) ?? referenceRefusal(fleet, next),
  conflict: (fleet, next, before) =>
    // Unchanged members did not overlap before.
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

function definitionRefusal(network: NetworkState): Refusal | undefined {
  for (const { path, message } of definitionProblems(network)) {
    const place = path.map((step) => (typeof step === 'number' ? `[${step}]` : `.${step}`)).join('');
    return invalid(`${place.slice(1)}: ${message}`);
  }
  return undefined;
}

/** The nodes must exist, and the credential must be of type reality and have the server name. */
function referenceRefusal(fleet: FleetView, network: NetworkState): Refusal | undefined {
  const credential = credentialAt(fleet, network.credential_id);
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
  for (const [index, { node_id }] of network.members.entries()) {
    if (fleet.has(nodeKey.type, node_id)) continue;
    return invalid(`members[${index}].node_id: expected the id of a node, there is no node ${node_id}`);
  }
  return undefined;
}

/** Conflicts that keep a network from being live: listeners, context ids and interfaces of others, and listeners that nobody can dial. */
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
