/** The declaration of nodes. */
import type { Json } from '../../kernel/json.js';
import { eventAudit, fieldChanges, masked, lifecycleAudit } from '../resource/audit-change.js';
import type { EventContext, Resource } from '../resource/declaration.js';
import type { FleetView } from '../resource/fleet-view.js';
import type { Undo } from '../resource/undo.js';
import { earlierValues, lifecycleUndo } from '../resource/undo.js';
import { decideNode } from './decide.js';
import { evolveNode } from './evolve.js';
import { evolveLabels, isLabelField, labelChanges } from './labels.js';
import type { NodeCommand, NodeEvent, NodeState } from './node.js';
import { dialAddress, nodeFields, nodeKey } from './node.js';

const audit = lifecycleAudit(nodeFields);
const undo = lifecycleUndo('node', 'Node', 'node');
const reportedByAgent = 'it is a fact reported by the agent';

/** The nodes that dial this one, if the event changes the address that they dial. */
function diallersIfMoved(
  fleet: FleetView,
  event: Extract<NodeEvent, { readonly type: 'NodeUpdated' | 'NodeReportedAddressChanged' }>,
  context: EventContext,
): readonly string[] {
  // Most edits change only names and labels.
  if (event.type === 'NodeUpdated' && event.data.changes['address'] === undefined) return [];
  const before = fleet.get(nodeKey, event.data.node_id);
  const after = evolveNode(before, event, context);
  if (before === undefined || after === undefined || dialAddress(before) === dialAddress(after)) return [];
  return fleet.diallersOf(before.id).map(({ diallerId }) => diallerId);
}

/** Each label is a field of its own. */
function undoUpdate(event: Extract<NodeEvent, { readonly type: 'NodeUpdated' }>): Undo {
  const { node_id: id, changes } = event.data;
  const plain = Object.entries(changes).filter(([field]) => !isLabelField(field));
  const back = Object.fromEntries(
    Object.entries(changes).map(([field, { from, to }]) => [field, { from: to, to: from }]),
  );
  return {
    ...undo.updated(event),
    now(fleet: FleetView) {
      const node = fleet.get(nodeKey, id);
      if (node === undefined) return undefined;
      const fields = new Map<string, Json>([
        ...Object.entries(labelChanges({}, node.labels)).map(([field, { to }]) => [field, to] as const),
        ...nodeFields.map((field) => [field, node[field]] as const),
      ]);
      return (field) => fields.get(field) ?? null;
    },
    command(fleet: FleetView) {
      const labels = fleet.get(nodeKey, id)?.labels ?? {};
      const relabelled = plain.length === Object.keys(changes).length ? {} : { labels: evolveLabels(labels, back) };
      return { ...earlierValues(Object.fromEntries(plain)), ...relabelled, type: 'UpdateNode', id, ifMatch: undefined };
    },
  };
}

const itself = (_fleet: FleetView, event: NodeEvent): readonly string[] => [event.data.node_id];

export const node: Resource<'node', 'Node', 'node', NodeState, NodeEvent, NodeCommand> = {
  type: 'node',
  noun: 'Node',
  singular: 'node',
  fields: nodeFields,
  decide: decideNode,
  evolve: evolveNode,
  indexed: null,
  compiled: null,
  objectionTo: null,
  events: {
    NodeCreated: { schemaVersion: 1, audit: audit.created, undo: undo.created, touches: itself },
    NodeUpdated: { schemaVersion: 1, audit: audit.updated, undo: undoUpdate, touches: diallersIfMoved },
    NodeDeleted: {
      schemaVersion: 1,
      audit: audit.deleted,
      undo: undo.deleted,
      touches: () => [],
    },
    NodeRestored: { schemaVersion: 1, audit: audit.restored, undo: undo.restored, touches: itself },
    NodePskIssued: {
      schemaVersion: 1,
      audit: ({ data }) =>
        eventAudit(
          'psk',
          [
            { path: 'control_psk', before: null, after: masked },
            { path: 'psk_fingerprint', before: null, after: data.fingerprint },
          ],
          'a PSK can be replaced by a new one, not taken back',
        ),
      undo: null,
      touches: () => [],
    },
    NodeConfigRefreshed: {
      schemaVersion: 1,
      audit: () => eventAudit('refresh', [], 'a refresh changes nothing that could be undone'),
      undo: null,
      touches: itself,
    },
    NodeReportedAddressChanged: {
      schemaVersion: 1,
      audit({ data: { public_ipv4, public_ipv6 } }) {
        const changes = fieldChanges({ public_ipv4, public_ipv6 }).filter(({ before, after }) => before !== after);
        return eventAudit('update', changes, reportedByAgent);
      },
      undo: null,
      touches: diallersIfMoved,
    },
    NodeGenerationRaised: {
      schemaVersion: 1,
      audit: ({ data }) => eventAudit('refresh', fieldChanges({ generation_offset: data.offset }), reportedByAgent),
      undo: null,
      touches: itself,
    },
    NodeCommandQueued: {
      schemaVersion: 1,
      audit: ({ data }) =>
        eventAudit(
          'command',
          [{ path: 'command', before: null, after: data.command }],
          'a command to an agent cannot be called back',
        ),
      undo: null,
      touches: () => [],
    },
  },
};
