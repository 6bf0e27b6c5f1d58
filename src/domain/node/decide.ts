/** Decides commands about nodes. Implements `docs/contract/rest.md#nodes` and `docs/contract/domain.md#generation`. */
import { limits } from '../../kernel/limits.js';
import { err, ok } from '../../kernel/result.js';
import { policiesOf } from '../listener-policy/policy.js';
import { describeOwners } from '../references/references.js';
import type { Changes } from '../resource/change.js';
import { changesOf } from '../resource/change.js';
import type { Decisions } from '../resource/declaration.js';
import type { FleetView } from '../resource/fleet-view.js';
import { pick } from '../resource/lifecycle.js';
import type { Decision, Refusal } from '../resource/refusal.js';
import { refuse } from '../resource/refusal.js';
import { existing, exists, nameTaken, stillUsed, unlessRefused } from '../resource/rules.js';
import { overrideRefusal } from '../settings/decide.js';
import { settingsOf } from '../settings/settings.js';
import { labelChanges } from './labels.js';
import type { NodeCommand, NodeEvent, NodeState } from './node.js';
import { dialAddress, nodeFields, nodeKey, unexpired } from './node.js';

/** Commands per node that can wait for its agent. */
const queuedCommandsMax = 64;

type Of<T extends NodeCommand['type']> = Extract<NodeCommand, { readonly type: T }>;

/** Decides on the node that a command addresses, at the version that the command expects. */
const onNode =
  <C extends Exclude<NodeCommand, Of<'CreateNode' | 'RestoreNode'>>>(
    decide: (fleet: FleetView, node: NodeState, command: C) => Decision<NodeEvent>,
  ) =>
  (fleet: FleetView, command: C): Decision<NodeEvent> => {
    const node = existing(fleet, nodeKey, command);
    return node.ok ? decide(fleet, node.value, command) : err(node.error);
  };

export const decideNode: Decisions<NodeCommand, NodeEvent> = {
  CreateNode(fleet, { type: _, id, psk, ...fields }) {
    const taken = nameTaken(fleet, nodeKey.type, fields.name);
    if (taken !== undefined) return err(taken);
    const created: NodeEvent = { type: 'NodeCreated', data: { node_id: id, ...pick(fields, nodeFields) } };
    return ok(psk === null ? [created] : [created, { type: 'NodePskIssued', data: { node_id: id, ...psk } }]);
  },
  UpdateNode: onNode(update),
  DeleteNode: onNode((fleet, node) => {
    const override = settingsOf(fleet).nodes[node.id] ?? null;
    const { id: node_id, generation_offset } = node;
    const policies = policiesOf(fleet, node.id).map((policy) =>
      pick(policy, ['transport', 'listen_addr', 'listen_port', 'priority_order']),
    );
    const data = { node_id, ...pick(node, nodeFields), override, policies, generation_offset };
    return unlessRefused(stillUsed(fleet, nodeKey.type, node), { type: 'NodeDeleted', data });
  }),
  RestoreNode(fleet, { type: _, id, ...node }) {
    const refusal =
      exists(fleet, nodeKey.type, id) ??
      nameTaken(fleet, nodeKey.type, node.name) ??
      overrideRefusal(fleet, id, node.override);
    return unlessRefused(refusal, { type: 'NodeRestored', data: { node_id: id, ...node } });
  },
  IssueNodePsk: onNode((_fleet, node, { fingerprint, verifier }: Of<'IssueNodePsk'>) =>
    ok([{ type: 'NodePskIssued', data: { node_id: node.id, fingerprint, verifier } }]),
  ),
  RefreshNodeConfig: onNode((_fleet, node) => ok([{ type: 'NodeConfigRefreshed', data: { node_id: node.id } }])),
  ReportNodeAddress: onNode(reportAddress),
  RaiseNodeGeneration: onNode(raise),
  QueueNodeCommand: onNode(queue),
};

function update(fleet: FleetView, node: NodeState, command: Of<'UpdateNode'>): Decision<NodeEvent> {
  const { labels, ...fields } = command;
  const changes: Changes = {
    ...changesOf(node, fields, nodeFields),
    ...(labels === undefined ? {} : labelChanges(node.labels, labels)),
  };
  if (Object.keys(changes).length === 0) return ok([]);
  const { name, address } = fields;
  const refusal =
    (name === undefined ? undefined : nameTaken(fleet, nodeKey.type, name, node.id)) ??
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

/** Raises the offset so that the node's next generation is above the one that its agent runs. */
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

function queue(_fleet: FleetView, node: NodeState, command: Of<'QueueNodeCommand'>): Decision<NodeEvent> {
  const { command: name, queued_at, expires_at } = command;
  if (unexpired(node.commands, queued_at).length >= queuedCommandsMax) {
    return refuse(
      'conflict',
      `the node "${node.name}" has ${queuedCommandsMax} commands waiting for its agent; expected fewer`,
    );
  }
  return ok([{ type: 'NodeCommandQueued', data: { node_id: node.id, command: name, queued_at, expires_at } }]);
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
