/** Decides changes of the connectivity settings. Implements `docs/contract/rest.md#connectivity-settings`. */
import { jsonEqual, type Json } from '../../kernel/json.js';
import { err, ok } from '../../kernel/result.js';
import { tcpListenerOn } from '../listeners/collisions.js';
import { describeOwner } from '../references/references.js';
import { changesOf, type Changes } from '../resource/change.js';
import type { FleetView } from '../resource/fleet-view.js';
import { versionMismatch, type Decision, type Refusal } from '../resource/refusal.js';
import { unknownNode, unlessRefused } from '../resource/rules.js';
import {
  settingsProblems,
  effectiveMultiplex,
  globalFields,
  policyFields,
  settingsOf,
  type MultiplexOverride,
  type SettingsEvent,
  type SettingsState,
  type UpdateConnectivity,
} from './settings.js';
import { evolveSettings, nodesInReach, overrideField } from './evolve.js';

export function updateConnectivity(fleet: FleetView, command: UpdateConnectivity): Decision<SettingsEvent> {
  const settings = settingsOf(fleet);
  const refusal =
    versionMismatch(settings.version, command.ifMatch) ?? unknownNode(fleet, 'nodes', command.nodes ?? []);
  if (refusal !== undefined) return err(refusal);
  const changes: Changes = {
    ...changesOf(settings, { ...command, ...policyIds(fleet, command), nodes: undefined }, globalFields),
    ...overrideChanges(settings, command),
  };
  if (Object.keys(changes).length === 0) return ok([]);
  const event: SettingsEvent = { type: 'ConnectivityUpdated', data: { changes } };
  const next = evolveSettings(settings, event, { at: '' });
  return unlessRefused(
    valueRefusal(next) ?? unknownPolicy(fleet, changes) ?? portCollision(fleet, settings, next, changes),
    event,
  );
}

/** Not imported, because the policies' folder imports this one. */
const policyType = 'rollout_policy';

/** The policies that a command gives, by id. */
function policyIds(fleet: FleetView, command: UpdateConnectivity): Partial<UpdateConnectivity> {
  const given = policyFields.filter((field) => typeof command[field] === 'string');
  return Object.fromEntries(
    given.map((field) => [field, fleet.idOfName(policyType, command[field] ?? '') ?? command[field]]),
  );
}

function unknownPolicy(fleet: FleetView, changes: Changes): Refusal | undefined {
  for (const field of policyFields) {
    const id = changes[field]?.to;
    if (typeof id !== 'string' || fleet.has(policyType, id)) continue;
    return {
      code: 'invalid_request',
      message: `${field}: expected the name of a rollout policy, there is none "${id}"`,
    };
  }
  return undefined;
}

function overrideChanges(settings: SettingsState, command: UpdateConnectivity): Changes {
  const changes: Record<string, { from: Json; to: Json }> = {};
  for (const { node_id, multiplex, multiplex_port } of command.nodes ?? []) {
    const from = asJson(settings.nodes[node_id]);
    const to = multiplex === null ? null : { multiplex, multiplex_port: multiplex_port ?? null };
    if (jsonEqual(from, to)) delete changes[overrideField(node_id)];
    else changes[overrideField(node_id)] = { from, to };
  }
  return changes;
}

const asJson = (override: MultiplexOverride | undefined): Json => (override === undefined ? null : { ...override });

/** Why a node cannot be restored with its override. No port can collide, because the node has no listener yet. */
export function overrideRefusal(
  fleet: FleetView,
  nodeId: string,
  override: MultiplexOverride | null,
): Refusal | undefined {
  const settings = settingsOf(fleet);
  return override === null
    ? undefined
    : valueRefusal({ ...settings, nodes: { ...settings.nodes, [nodeId]: override } });
}

function valueRefusal(next: SettingsState): Refusal | undefined {
  for (const { field, message } of settingsProblems(next)) {
    return { code: 'invalid_request', message: `${field}: ${message}` };
  }
  for (const [nodeId, override] of Object.entries(next.nodes)) {
    if (override.multiplex && override.multiplex_port === null && next.multiplex_port === null) {
      return {
        code: 'invalid_request',
        message: `nodes: expected a multiplex_port for node ${nodeId}, since its multiplex is true and there is no global port`,
      };
    }
  }
  return undefined;
}

/** A multiplex port is held on `::` and collides with every TCP listener on it. */
function portCollision(
  fleet: FleetView,
  before: SettingsState,
  after: SettingsState,
  changes: Changes,
): Refusal | undefined {
  for (const nodeId of nodesInReach(changes, fleet.ids('node'))) {
    const port = effectiveMultiplex(after, nodeId).multiplex_port;
    if (port === null || port === effectiveMultiplex(before, nodeId).multiplex_port) continue;
    const holder = tcpListenerOn(fleet, nodeId, port);
    if (holder === undefined) continue;
    const node = fleet.nameOf('node', nodeId) ?? nodeId;
    return {
      code: 'conflict',
      message: `multiplex_port: port ${port} on node "${node}" collides with ${describeOwner(fleet, holder.owner)} on ${holder.addr}`,
    };
  }
  return undefined;
}
