/** A beacon: a signal that a node sends. Invented, to show what a resource takes. It adds nothing to snapshots. */
import { ownerOf } from '../references/references.js';
import { defineResource } from '../resource/define-resource.js';

export interface BeaconDefinition {
  readonly name: string;
  readonly node_id: string;
  readonly interval_secs: number;
  readonly colours: readonly string[];
}

export const beacon = defineResource<BeaconDefinition>()('beacon', {
  fields: ['name', 'node_id', 'interval_secs', 'colours'],
  invalid(fleet, { node_id }) {
    if (fleet.has('node', node_id)) return undefined;
    return { code: 'invalid_request', message: `node_id: expected the id of a node, there is no node ${node_id}` };
  },
  indexed: {
    dependsOn: ['node_id'],
    references: ({ node_id }) => [ownerOf('node', node_id)],
    claims: () => [],
    nodes: () => [],
  },
  compiled: null,
  touches: null,
});
