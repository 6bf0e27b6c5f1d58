/** Decides commands about nodes against the fleet; pure. */
import { ok } from '../../kernel/result.js';
import { unreachable } from '../../kernel/errors.js';
import { limits } from '../../kernel/limits.js';
import type { Changes } from '../resource/change.js';
import { changesOf } from '../resource/change.js';
import { liveDiallers } from '../compile/affected.js';
import type { Fleet } from '../fleet/fleet.js';
import { generationOf } from '../fleet/fleet.js';
import { versionMismatch } from '../resource/if-match.js';
import { chainOwner } from '../listeners/claims.js';
import { describeOwners } from '../listeners/collisions.js';
import { nameKey } from '../resource/names.js';
import type { Decision, Refusal } from '../resource/refusal.js';
import { refuse } from '../resource/refusal.js';
import { dialAddress, labelChanges, unexpired } from './evolve.js';
import type { NodeCommand, NodeEvent, NodeState } from './node.js';

/** Commands of one node that wait for its agent. */
const queuedCommandsMax = 64;

export function decideNode(fleet: Fleet, command: NodeCommand): Decision<NodeEvent> {
  if (command.type === 'CreateNode') return create(fleet, command);
  const node = fleet.nodes.get(command.id);
  if (node === undefined) return refuse('not_found', `there is no node ${command.id}`);
  switch (command.type) {
    case 'UpdateNode':
      return update(fleet, node, command);
    case 'DeleteNode':
      return remove(fleet, node, command);
    case 'IssueNodePsk': {
      const { fingerprint, verifier } = command;
      return ok([{ type: 'NodePskIssued', data: { node_id: node.id, fingerprint, verifier } }]);
    }
    case 'RefreshNodeConfig':
      return ok([{ type: 'NodeConfigRefreshed', data: { node_id: node.id } }]);
    case 'ReportNodeAddress':
      return reportAddress(fleet, node, command);
    case 'RaiseNodeGeneration':
      return raise(fleet, node, command.reported);
    case 'QueueNodeCommand':
      return queue(node, command);
    default:
      return unreachable(command);
  }
}

type Of<T extends NodeCommand['type']> = Extract<NodeCommand, { type: T }>;

function create(fleet: Fleet, command: Of<'CreateNode'>): Decision<NodeEvent> {
  const taken = nameTaken(fleet, command.name, undefined);
  if (taken !== undefined) return { ok: false, error: taken };
  const { id, name, description, address, labels, psk } = command;
  const created: NodeEvent = { type: 'NodeCreated', data: { node_id: id, name, description, address, labels } };
  return ok(psk === null ? [created] : [created, { type: 'NodePskIssued', data: { node_id: id, ...psk } }]);
}

function update(fleet: Fleet, node: NodeState, command: Of<'UpdateNode'>): Decision<NodeEvent> {
  const mismatch = versionMismatch(node.version, command.ifMatch);
  if (mismatch !== undefined) return { ok: false, error: mismatch };
  const { name, description, address } = command;
  const changes: Changes = {
    ...changesOf(node, { name, description, address }),
    ...(command.labels === undefined ? {} : labelChanges(node.labels, command.labels)),
  };
  if (Object.keys(changes).length === 0) return ok([]);
  const taken = name === undefined ? undefined : nameTaken(fleet, name, node.id);
  if (taken !== undefined) return { ok: false, error: taken };
  if (address !== undefined) {
    const stranded = strandsDiallers(fleet, node, { ...node, address });
    if (stranded !== undefined) return { ok: false, error: stranded };
  }
  return ok([{ type: 'NodeUpdated', data: { node_id: node.id, changes } }]);
}

function remove(fleet: Fleet, node: NodeState, command: Of<'DeleteNode'>): Decision<NodeEvent> {
  const mismatch = versionMismatch(node.version, command.ifMatch);
  if (mismatch !== undefined) return { ok: false, error: mismatch };
  const owners = fleet.references.get(`node/${node.id}`);
  if (owners.size > 0) {
    return refuse('conflict', `the node "${node.name}" is still named by ${describeOwners(fleet, owners)}`);
  }
  const { name, description, address, labels, generation_offset } = node;
  const override = fleet.settings.value.nodes[node.id] ?? null;
  return ok([
    {
      type: 'NodeDeleted',
      data: { node_id: node.id, name, description, address, labels, override, generation_offset },
    },
  ]);
}

function reportAddress(fleet: Fleet, node: NodeState, command: Of<'ReportNodeAddress'>): Decision<NodeEvent> {
  const { public_ipv4, public_ipv6 } = command;
  if (public_ipv4 === node.public_ipv4 && public_ipv6 === node.public_ipv6) return ok([]);
  const stranded = strandsDiallers(fleet, node, { ...node, public_ipv4, public_ipv6 });
  if (stranded !== undefined) return { ok: false, error: stranded };
  return ok([
    {
      type: 'NodeReportedAddressChanged',
      data: {
        node_id: node.id,
        public_ipv4: { from: node.public_ipv4, to: public_ipv4 },
        public_ipv6: { from: node.public_ipv6, to: public_ipv6 },
      },
    },
  ]);
}

/** The offset that puts the node's next generation above what its agent runs. It never falls. */
function raise(fleet: Fleet, node: NodeState, reported: number): Decision<NodeEvent> {
  // Another instance may have raised it meanwhile.
  if (reported < (generationOf(fleet, node.id) ?? 0)) return ok([]);
  const revision = fleet.touched.get(node.id) ?? fleet.revision.value;
  const to = Math.max(node.generation_offset, reported - revision);
  if (fleet.revision.value + to + 2 > limits.fleet.generationMax) {
    return refuse('conflict', `the version ${reported} leaves no generation above it`);
  }
  return ok([
    { type: 'NodeGenerationRaised', data: { node_id: node.id, offset: { from: node.generation_offset, to } } },
  ]);
}

function queue(node: NodeState, command: Of<'QueueNodeCommand'>): Decision<NodeEvent> {
  const { command: name, queued_at, expires_at } = command;
  if (unexpired(node.commands, queued_at).length >= queuedCommandsMax) {
    return refuse(
      'conflict',
      `the node "${node.name}" has ${queuedCommandsMax} commands that its agent may still get; expected fewer`,
    );
  }
  return ok([{ type: 'NodeCommandQueued', data: { node_id: node.id, command: name, queued_at, expires_at } }]);
}

function nameTaken(fleet: Fleet, name: string, ownId: string | undefined): Refusal | undefined {
  const holder = fleet.names.get(`node/${nameKey(name)}`);
  if (holder === undefined || holder === ownId) return undefined;
  return { code: 'conflict', message: `name: "${name}" is the name of node ${holder} already; expected a unique name` };
}

function strandsDiallers(fleet: Fleet, before: NodeState, after: NodeState): Refusal | undefined {
  if (dialAddress(after) !== null || dialAddress(before) === null) return undefined;
  const diallers = liveDiallers(fleet, before.id);
  if (diallers.length === 0) return undefined;
  const chains = new Set(diallers.map(({ chain }) => chainOwner(chain.id)));
  return {
    code: 'conflict',
    message: `address: without one the node "${before.name}" could no longer be dialled by ${describeOwners(fleet, chains)}`,
  };
}
