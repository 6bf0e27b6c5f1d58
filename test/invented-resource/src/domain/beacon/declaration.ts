/** The declaration of beacons. They add nothing to snapshots. */
import { ownerOf } from '../references/references.js';
import type { Resource } from '../resource/declaration.js';
import { lifecycleAudit } from '../resource/lifecycle-audit.js';
import { lifecycleFold } from '../resource/lifecycle-fold.js';
import { lifecycleUndo } from '../resource/undo.js';
import type { BeaconCommand, BeaconEvent, BeaconState } from './beacon.js';
import { beaconFields } from './beacon.js';
import { decideBeacon } from './decide.js';

const audit = lifecycleAudit(beaconFields);
const undo = lifecycleUndo('beacon', 'Beacon', 'beacon');

export const beacon: Resource<'beacon', 'Beacon', 'beacon', BeaconState, BeaconEvent, BeaconCommand> = {
  type: 'beacon',
  noun: 'Beacon',
  singular: 'beacon',
  fields: beaconFields,
  decide: decideBeacon,
  evolve: lifecycleFold('Beacon', 'beacon'),
  indexed: {
    dependsOn: ['node_id'],
    references: (state) => [ownerOf('node', state.node_id)],
    claims: () => [],
    nodes: () => [],
  },
  compiled: null,
  objectionTo: null,
  events: {
    BeaconCreated: { schemaVersion: 1, audit: audit.created, undo: undo.created, touches: () => [] },
    BeaconUpdated: { schemaVersion: 1, audit: audit.updated, undo: undo.updated, touches: () => [] },
    BeaconDeleted: { schemaVersion: 1, audit: audit.deleted, undo: undo.deleted, touches: () => [] },
    BeaconRestored: { schemaVersion: 1, audit: audit.restored, undo: undo.restored, touches: () => [] },
  },
};
