/** Decides commands about beacons against the fleet; pure. */
import { err, ok } from '../../kernel/result.js';
import { changesOf, withChanges } from '../resource/change.js';
import type { Decisions } from '../resource/declaration.js';
import type { FleetView } from '../resource/fleet-view.js';
import { pick } from '../resource/lifecycle.js';
import type { Refusal } from '../resource/refusal.js';
import { existing, nameTaken, unlessRefused } from '../resource/rules.js';
import type { BeaconCommand, BeaconDefinition, BeaconEvent } from './beacon.js';
import { beaconFields, beaconKey } from './beacon.js';

export const decideBeacon: Decisions<BeaconCommand, BeaconEvent> = {
  CreateBeacon(fleet, { type: _, id, ...fields }) {
    const refusal = unknownNode(fleet, fields) ?? nameTaken(fleet, beaconKey.type, fields.name);
    return unlessRefused(refusal, { type: 'BeaconCreated', data: { beacon_id: id, ...fields } });
  },
  UpdateBeacon(fleet, command) {
    const beacon = existing(fleet, beaconKey, command);
    if (!beacon.ok) return err(beacon.error);
    const { id } = beacon.value;
    const changes = changesOf(beacon.value, command, beaconFields);
    if (Object.keys(changes).length === 0) return ok([]);
    const next = withChanges(beacon.value, changes);
    const refusal = unknownNode(fleet, next) ?? nameTaken(fleet, beaconKey.type, next.name, id);
    return unlessRefused(refusal, { type: 'BeaconUpdated', data: { beacon_id: id, changes } });
  },
  DeleteBeacon(fleet, command) {
    const beacon = existing(fleet, beaconKey, command);
    if (!beacon.ok) return err(beacon.error);
    const data = { beacon_id: beacon.value.id, ...pick(beacon.value, beaconFields) };
    return ok([{ type: 'BeaconDeleted', data }]);
  },
  RestoreBeacon(fleet, { type: _, id, ...fields }) {
    const refusal = unknownNode(fleet, fields) ?? nameTaken(fleet, beaconKey.type, fields.name);
    return unlessRefused(refusal, { type: 'BeaconRestored', data: { beacon_id: id, ...fields } });
  },
};

function unknownNode(fleet: FleetView, { node_id }: BeaconDefinition): Refusal | undefined {
  if (fleet.has('node', node_id)) return undefined;
  return { code: 'invalid_request', message: `node_id: expected the id of a node, there is no node ${node_id}` };
}
