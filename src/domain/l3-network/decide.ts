/** Decides commands about L3 networks. Implements `docs/contract/domain.md#l3-network`. */
import { limits } from '../../kernel/limits.js';
import { err, ok } from '../../kernel/result.js';
import { credentialAt } from '../credential/credential.js';
import { namesOfCredential } from '../credential/material.js';
import { collisionOf, collisionSentence } from '../listeners/collisions.js';
import { nodeKey } from '../node/node.js';
import { changesOf, withChanges } from '../resource/change.js';
import type { Decisions } from '../resource/declaration.js';
import type { FleetView } from '../resource/fleet-view.js';
import { pick } from '../resource/lifecycle.js';
import type { Refusal } from '../resource/refusal.js';
import { refuse } from '../resource/refusal.js';
import { existing, exists, nameTaken, unlessRefused } from '../resource/rules.js';
import { identifiedTunnels, namedMembers, nextNetworkId } from './assign.js';
import { claimOfTunnel } from './claims.js';
import { definitionProblems } from './definition.js';
import { interfaceTaken } from './interfaces.js';
import type { NetworkCommand, NetworkEvent, NetworkState } from './l3-network.js';
import { networkFields, networkKey } from './l3-network.js';
import { overlapBetween } from './overlaps.js';
import { peerEndpoint } from './rules.js';

export const decideNetwork: Decisions<NetworkCommand, NetworkEvent> = {
  CreateL3Network(fleet, { type: _, id, members, tunnels, ...settings }) {
    const network_id = nextNetworkId(fleet);
    if (network_id === undefined) {
      return refuse('conflict', `network_id: every number up to ${limits.fleet.l3.networkIdMax} has been used`);
    }
    const network: NetworkState = {
      ...settings,
      id,
      version: 0,
      created_at: '',
      updated_at: '',
      network_id,
      members: namedMembers(network_id, members),
      tunnels: identifiedTunnels(fleet, { id, ...settings }, tunnels),
    };
    const data = { l3_network_id: id, ...pick(network, networkFields) };
    return unlessRefused(refusalOf(fleet, network), { type: 'L3NetworkCreated', data });
  },
  UpdateL3Network(fleet, command) {
    const found = existing(fleet, networkKey, command);
    if (!found.ok) return err(found.error);
    const network = found.value;
    const { members, tunnels, ...settings } = command;
    const edited = withChanges(network, changesOf(network, settings, networkFields));
    const changes = changesOf(
      network,
      {
        ...settings,
        members: members === undefined ? undefined : namedMembers(network.network_id, members),
        tunnels: tunnels === undefined ? undefined : identifiedTunnels(fleet, edited, tunnels, network.tunnels),
      },
      networkFields,
    );
    if (Object.keys(changes).length === 0) return ok([]);
    const refusal = refusalOf(fleet, withChanges(network, changes), network);
    return unlessRefused(refusal, { type: 'L3NetworkUpdated', data: { l3_network_id: network.id, changes } });
  },
  DeleteL3Network(fleet, command) {
    const network = existing(fleet, networkKey, command);
    if (!network.ok) return err(network.error);
    const data = { l3_network_id: network.value.id, ...pick(network.value, networkFields) };
    return ok([{ type: 'L3NetworkDeleted', data }]);
  },
  RestoreL3Network(fleet, { type: _, id, former, ...fields }) {
    // It gets back its number and context ids: no other network ever had that number.
    const network: NetworkState = { ...fields, id, version: 0, created_at: '', updated_at: '' };
    const data = { l3_network_id: id, ...fields, former };
    const refusal = exists(fleet, networkKey.type, id) ?? refusalOf(fleet, network);
    return unlessRefused(refusal, { type: 'L3NetworkRestored', data });
  },
};

/**
 * Why a network cannot be saved as it is. Checked in the order of `docs/contract/rest.md#envelope`.
 * @param before as it was; undefined for a new one
 */
function refusalOf(fleet: FleetView, network: NetworkState, before?: NetworkState): Refusal | undefined {
  return (
    definitionRefusal(network) ??
    referenceRefusal(fleet, network) ??
    nameTaken(fleet, networkKey.type, network.name, before?.id) ??
    // Unchanged members did not overlap before.
    (network.members === before?.members ? undefined : overlapRefusal(fleet, network)) ??
    (network.enabled ? liveRefusal(fleet, network) : undefined)
  );
}

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
