/** Decides changes of the connectivity settings against the fleet; pure. */
import type { Json } from '../../kernel/json.js';
import { jsonEqual } from '../../kernel/json.js';
import { ok } from '../../kernel/result.js';
import type { Changes } from '../resource/change.js';
import { changesOf } from '../resource/change.js';
import type { Fleet } from '../fleet/fleet.js';
import { versionMismatch } from '../resource/if-match.js';
import { describeOwner, tcpListenerOn } from '../listeners/collisions.js';
import type { MultiplexOverride } from '../node/node.js';
import type { Decision, Refusal } from '../resource/refusal.js';
import { refuse } from '../resource/refusal.js';
import { evolveSettings, nodesInReach, overrideField } from './evolve.js';
import type { SettingsEvent, SettingsState, UpdateConnectivity } from './settings.js';
import { effectiveMultiplex } from './settings.js';

export function decideSettings(fleet: Fleet, command: UpdateConnectivity): Decision<SettingsEvent> {
  const settings = fleet.settings.value;
  const mismatch = versionMismatch(settings.version, command.ifMatch);
  if (mismatch !== undefined) return { ok: false, error: mismatch };
  for (const [index, { node_id }] of (command.nodes ?? []).entries()) {
    if (!fleet.nodes.has(node_id)) {
      return refuse(
        'invalid_request',
        `nodes[${index}].node_id: expected the id of a node, there is no node ${node_id}`,
      );
    }
  }
  const { multiplex, multiplex_port, heartbeat_interval_secs, metrics_interval_secs, offline_after_secs } = command;
  const changes: Changes = {
    ...changesOf(settings, {
      multiplex,
      multiplex_port,
      heartbeat_interval_secs,
      metrics_interval_secs,
      offline_after_secs,
    }),
    ...overrideChanges(settings, command),
  };
  if (Object.keys(changes).length === 0) return ok([]);
  const event: SettingsEvent = { type: 'ConnectivityUpdated', data: { changes } };
  const next = evolveSettings(settings, event, '');
  const refusal = valueRefusal(next) ?? portCollision(fleet, settings, next, changes);
  return refusal === undefined ? ok([event]) : { ok: false, error: refusal };
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

function valueRefusal(next: SettingsState): Refusal | undefined {
  const least = 2 * next.heartbeat_interval_secs;
  if (next.offline_after_secs !== null && next.offline_after_secs < least) {
    return {
      code: 'invalid_request',
      message: `offline_after_secs: expected at least twice heartbeat_interval_secs (${least}), got ${next.offline_after_secs}`,
    };
  }
  if (next.multiplex && next.multiplex_port === null) {
    return { code: 'invalid_request', message: 'multiplex_port: expected a port, since multiplex is true' };
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

/** A multiplex port is held on `::` and shares with nothing. */
function portCollision(
  fleet: Fleet,
  before: SettingsState,
  after: SettingsState,
  changes: Changes,
): Refusal | undefined {
  for (const nodeId of nodesInReach(changes, fleet.nodes.ids())) {
    const port = effectiveMultiplex(after, nodeId).multiplex_port;
    if (port === null || port === effectiveMultiplex(before, nodeId).multiplex_port) continue;
    const taken = tcpListenerOn(fleet, nodeId, port);
    if (taken === undefined) continue;
    const node = fleet.nodes.get(nodeId)?.name ?? nodeId;
    return {
      code: 'conflict',
      message: `multiplex_port: port ${port} on node "${node}" collides with ${describeOwner(fleet, taken.owner)} on ${taken.addr}`,
    };
  }
  return undefined;
}
