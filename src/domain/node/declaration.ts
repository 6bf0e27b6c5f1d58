/**
 * The declaration of nodes, with the decisions on their commands.
 * Implements `docs/contract/rest.md#nodes` and `docs/contract/domain.md#generation`.
 */
import type { Json } from '../../kernel/json.js';
import {
  addedFields,
  eventAudit,
  fieldChanges,
  lifecycleAudit,
  masked,
  removedFields,
} from '../resource/audit-change.js';
import { onRecord, type EventContext, type Resource, type Decisions } from '../resource/declaration.js';
import type { FleetView } from '../resource/fleet-view.js';
import { earlierValues, lifecycleUndo, type Undo } from '../resource/undo.js';
import {
  evolveNode,
  dialAddress,
  isOfBulk,
  nodeFields,
  nodeKey,
  type BulkCommand,
  type NodeCommand,
  type NodeEvent,
  type NodeState,
} from './node.js';
import { decideBulk, labelled, queued } from './bulk.js';
import { dropCandidate, issueCandidate, issued, proveCandidate } from './psk.js';
import { evolveLabels, isLabelField, labelChanges } from './labels.js';
import { limits } from '../../kernel/limits.js';
import { runSync } from '../../kernel/pieces.js';
import { err, ok } from '../../kernel/result.js';
import { policiesOf } from '../listener-policy/policy.js';
import { changesOf, inverseOf, type Changes } from '../resource/change.js';
import { pick } from '../resource/lifecycle.js';
import { owned } from '../resource/lifecycle-decisions.js';
import { refuse, type Decision, type Refusal } from '../resource/refusal.js';
import {
  describeOwners,
  existing,
  exists,
  nameTaken,
  newNameRefusal,
  stillUsed,
  unlessRefused,
} from '../resource/rules.js';
import { overrideRefusal } from '../settings/decide.js';
import { settingsOf } from '../settings/settings.js';

/** The definition, and which set owns the node. */
const savedFields = [...nodeFields, 'managed_by'] as const;

type Of<T extends NodeCommand['type']> = Extract<NodeCommand, { readonly type: T }>;

/** Decides about the node that a command addresses, at the version that it expects. */
const onNode =
  <C extends Exclude<NodeCommand, Of<'CreateNode' | 'RestoreNode'>>>(
    decide: (fleet: FleetView, node: NodeState, command: C) => Decision<NodeEvent>,
  ) =>
  (fleet: FleetView, command: C): Decision<NodeEvent> => {
    const node = existing(fleet, nodeKey, command);
    return node.ok ? decide(fleet, node.value, command) : err(node.error);
  };

const decideNode: Decisions<NodeCommand | BulkCommand, NodeEvent> = {
  CreateNode(fleet, { type: _, id, psk, ...fields }) {
    const refusal = newNameRefusal(fleet, nodeKey.type, fields.name);
    if (refusal !== undefined) return err(refusal);
    const created: NodeEvent = { type: 'NodeCreated', data: { node_id: id, ...owned(pick(fields, savedFields)) } };
    if (psk === null) return ok([created]);
    const decision = issued(fleet, psk, { type: 'NodePskIssued', data: { node_id: id, ...psk } });
    return decision.ok ? ok([created, ...decision.value]) : decision;
  },
  UpdateNode: onNode(update),
  DeleteNode: onNode((fleet, node) => {
    const override = settingsOf(fleet).nodes[node.id] ?? null;
    const { id: node_id, generation_offset } = node;
    const policies = policiesOf(fleet, node.id).map((policy) =>
      owned(pick(policy, ['transport', 'listen_addr', 'listen_port', 'priority_order', 'managed_by'])),
    );
    const data = { node_id, ...owned(pick(node, savedFields)), override, policies, generation_offset };
    return unlessRefused(stillUsed(fleet, nodeKey.type, node), { type: 'NodeDeleted', data });
  }),
  RestoreNode(fleet, { type: _, id, ...node }) {
    const refusal =
      exists(fleet, nodeKey.type, id) ??
      nameTaken(fleet, nodeKey.type, node.name) ??
      overrideRefusal(fleet, id, node.override);
    return unlessRefused(refusal, { type: 'NodeRestored', data: { node_id: id, ...node } });
  },
  IssueNodePsk: onNode((fleet, _node, { type: _, id: node_id, ...psk }: Of<'IssueNodePsk'>) =>
    issued(fleet, psk, { type: 'NodePskIssued', data: { node_id, ...psk } }),
  ),
  IssueNodePskCandidate: onNode(issueCandidate),
  DropNodePskCandidate: onNode((_fleet, node, command: Of<'DropNodePskCandidate'>) => dropCandidate(node, command)),
  ProveNodePskCandidate: onNode(proveCandidate),
  RefreshNodeConfig: onNode((_fleet, node) => ok([{ type: 'NodeConfigRefreshed', data: { node_id: node.id } }])),
  ReportNodeAddress: onNode(reportAddress),
  RaiseNodeGeneration: onNode(raise),
  QueueNodeCommand: onNode((_fleet, node, command: Of<'QueueNodeCommand'>) => queued(node, command)),
  LabelNode: onNode((_fleet, node, { labels }: Of<'LabelNode'>) => labelled(node, labels)),
  LabelNodes: (fleet, command) => runSync(decideBulk(fleet, command)),
  QueueNodeCommands: (fleet, command) => runSync(decideBulk(fleet, command)),
};

function update(fleet: FleetView, node: NodeState, command: Of<'UpdateNode'>): Decision<NodeEvent> {
  const { labels, ...fields } = command;
  const changes: Changes = {
    ...changesOf(node, fields, savedFields),
    ...(labels === undefined ? {} : labelChanges(node.labels, labels)),
  };
  if (Object.keys(changes).length === 0) return ok([]);
  const { name, address } = fields;
  const refusal =
    (name === undefined ? undefined : newNameRefusal(fleet, nodeKey.type, name, node)) ??
    (address === undefined ? undefined : strandsDiallers(fleet, node, { ...node, address }));
  return unlessRefused(refusal, { type: 'NodeUpdated', data: { node_id: node.id, changes } });
}

function reportAddress(fleet: FleetView, node: NodeState, command: Of<'ReportNodeAddress'>): Decision<NodeEvent> {
  const { public_ipv4, public_ipv6 } = command;
  if (public_ipv4 === node.public_ipv4 && public_ipv6 === node.public_ipv6) return ok([]);
  const data = {
    node_id: node.id,
    public_ipv4: { from: node.public_ipv4, to: public_ipv4 },
    public_ipv6: { from: node.public_ipv6, to: public_ipv6 },
  };
  const refusal = strandsDiallers(fleet, node, { ...node, public_ipv4, public_ipv6 });
  return unlessRefused(refusal, { type: 'NodeReportedAddressChanged', data });
}

/** Raises the offset, so that the node's next generation exceeds the one that its agent runs. */
function raise(fleet: FleetView, node: NodeState, { reported }: Of<'RaiseNodeGeneration'>): Decision<NodeEvent> {
  // Another instance may have raised it already.
  if (reported < (fleet.generationOf(node.id) ?? 0)) return ok([]);
  const revision = fleet.touchedAt(node.id) ?? fleet.revision.value;
  const to = Math.max(node.generation_offset, reported - revision);
  if (fleet.revision.value + to + 2 > limits.fleet.generationMax) {
    return refuse('conflict', `the version ${reported} leaves no generation above it`);
  }
  return ok([
    { type: 'NodeGenerationRaised', data: { node_id: node.id, offset: { from: node.generation_offset, to } } },
  ]);
}

function strandsDiallers(fleet: FleetView, before: NodeState, after: NodeState): Refusal | undefined {
  if (dialAddress(after) !== null || dialAddress(before) === null) return undefined;
  const diallers = fleet.diallersOf(before.id);
  if (diallers.length === 0) return undefined;
  const owners = new Set(diallers.map(({ owner }) => owner));
  return {
    code: 'conflict',
    message: `address: without one the node "${before.name}" could no longer be dialled by ${describeOwners(fleet, owners)}`,
  };
}

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
  return {
    ...undo.updated(event),
    now(fleet: FleetView) {
      const node = fleet.get(nodeKey, id);
      if (node === undefined) return undefined;
      const fields = new Map<string, Json>([
        ...Object.entries(labelChanges({}, node.labels)).map(([field, { to }]) => [field, to] as const),
        ...savedFields.map((field) => [field, node[field] ?? null] as const),
      ]);
      return (field) => fields.get(field) ?? null;
    },
    command(fleet: FleetView) {
      const labels = evolveLabels(fleet.get(nodeKey, id)?.labels ?? {}, inverseOf(changes));
      if (isOfBulk(event)) return { type: 'LabelNode', id, labels };
      const relabelled = plain.length === Object.keys(changes).length ? {} : { labels };
      return { ...earlierValues(Object.fromEntries(plain)), ...relabelled, type: 'UpdateNode', id, ifMatch: undefined };
    },
  };
}

const replacedForGood = 'a PSK can be replaced by a new one, not taken back';

const itself = (_fleet: FleetView, event: NodeEvent): readonly string[] => [event.data.node_id];

export const node: Resource<'node', 'Node', 'node', NodeState, NodeEvent, NodeCommand | BulkCommand> = {
  type: 'node',
  noun: 'Node',
  singular: 'node',
  fields: nodeFields,
  decide: decideNode,
  evolve: evolveNode,
  indexed: null,
  compiled: null,
  events: {
    NodeCreated: { audit: audit.created, undo: undo.created, touches: itself },
    NodeUpdated: {
      audit: (event) =>
        isOfBulk(event) ? eventAudit('label', () => fieldChanges(event.data.changes)) : audit.updated(event),
      undo: undoUpdate,
      touches: diallersIfMoved,
    },
    NodeDeleted: {
      audit: audit.deleted,
      undo: undo.deleted,
      touches: () => [],
    },
    NodeRestored: { audit: audit.restored, undo: undo.restored, touches: itself },
    NodePskIssued: {
      audit: ({ data }) =>
        eventAudit('psk', addedFields({ control_psk: masked, psk_fingerprint: data.fingerprint }), replacedForGood),
      ...onRecord,
    },
    NodePskCandidateIssued: {
      ...onRecord,
      audit: ({ data }) =>
        eventAudit(
          'psk_candidate',
          addedFields({
            control_psk: masked,
            'psk_candidate.fingerprint': data.fingerprint,
            'psk_candidate.expires_at': data.expires_at,
          }),
          'take the candidate back instead',
        ),
    },
    NodePskCandidateDropped: {
      ...onRecord,
      audit: ({ data }) =>
        eventAudit(
          'psk_candidate',
          removedFields({ 'psk_candidate.fingerprint': data.fingerprint }),
          'its text is not stored; issue another candidate',
        ),
    },
    NodePskCandidateProven: {
      ...onRecord,
      audit: ({ data }) =>
        eventAudit('psk', [{ path: 'psk_fingerprint', before: data.former, after: data.fingerprint }], replacedForGood),
    },
    NodeConfigRefreshed: {
      audit: () => eventAudit('refresh', [], 'a refresh changes nothing that could be undone'),
      undo: null,
      touches: itself,
    },
    NodeReportedAddressChanged: {
      audit({ data: { public_ipv4, public_ipv6 } }) {
        const changes = fieldChanges({ public_ipv4, public_ipv6 }).filter(({ before, after }) => before !== after);
        return eventAudit('update', changes, reportedByAgent);
      },
      undo: null,
      touches: diallersIfMoved,
    },
    NodeGenerationRaised: {
      audit: ({ data }) => eventAudit('refresh', fieldChanges({ generation_offset: data.offset }), reportedByAgent),
      undo: null,
      touches: itself,
    },
    NodeCommandQueued: {
      audit: ({ data }) =>
        eventAudit('command', addedFields(pick(data, ['command'])), 'a command to an agent cannot be called back'),
      ...onRecord,
    },
  },
};
