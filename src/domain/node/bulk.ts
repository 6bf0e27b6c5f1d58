/**
 * Commands about several nodes, and their parts about one: labels, and commands to agents. The events are one command of the
 * log, and one audit entry (`audit/describe.ts`). Implements `docs/contract/rest.md#nodes`.
 */
import { limits } from '../../kernel/limits.js';
import { ok } from '../../kernel/result.js';
import { mostBytesOf } from '../resource/event-bytes.js';
import type { FleetView } from '../resource/fleet-view.js';
import { refuse, type Decision } from '../resource/refusal.js';
import { labelChanges, type Labels } from './labels.js';
import { nodeKey, unexpired, type BulkCommand, type NodeEvent, type NodeState, type QueuedCommand } from './node.js';

const nodesPerPiece = 100;

/** Yields between two pieces. */
export function* decideBulk(fleet: FleetView, bulk: BulkCommand): Generator<void, Decision<NodeEvent>> {
  const events: NodeEvent[] = [];
  for (const [index, id] of bulk.ids.entries()) {
    if (index > 0 && index % nodesPerPiece === 0) yield;
    const node = fleet.get(nodeKey, id);
    if (node === undefined) {
      return refuse('invalid_request', `node_ids[${index}]: expected the id of a node, there is no node ${id}`);
    }
    const decision = bulk.type === 'LabelNodes' ? relabelled(node, bulk) : queued(node, { ...bulk, bulk: true });
    if (!decision.ok) return decision;
    events.push(...decision.value);
  }
  // The revert must fit too, whoever gives it.
  const bytes = bulk.type === 'LabelNodes' ? mostBytesOf(events) : 0;
  if (bytes <= limits.events.commandBytes) return ok(events);
  return refuse(
    'payload_too_large',
    `node_ids: the labels of ${events.length} nodes make events of ${bytes} bytes; expected at most ${limits.events.commandBytes}: name fewer nodes`,
  );
}

type Relabelling = Pick<Extract<BulkCommand, { readonly type: 'LabelNodes' }>, 'set' | 'remove'>;

function relabelled(node: NodeState, { set, remove }: Relabelling): Decision<NodeEvent> {
  const kept = Object.entries(node.labels).filter(([key]) => !remove.includes(key));
  const labels = Object.fromEntries([...kept, ...Object.entries(set)]);
  const count = Object.keys(labels).length;
  if (count <= limits.rest.labels) return labelled(node, labels);
  return refuse(
    'invalid_request',
    `set: expected at most ${limits.rest.labels} labels of a node; "${node.name}" would have ${count}`,
  );
}

/** The part about one node of a command that labels several. */
export function labelled({ id: node_id, labels: before }: NodeState, labels: Labels): Decision<NodeEvent> {
  const changes = labelChanges(before, labels);
  return ok(Object.keys(changes).length === 0 ? [] : [{ type: 'NodeUpdated', data: { node_id, changes, bulk: true } }]);
}

export function queued(
  { id: node_id, name, commands }: NodeState,
  { command, queued_at, expires_at, bulk }: QueuedCommand & { readonly bulk?: true },
): Decision<NodeEvent> {
  const most = limits.agent.queuedCommands;
  if (unexpired(commands, queued_at).length >= most) {
    return refuse('conflict', `the node "${name}" has ${most} commands waiting for its agent; expected fewer`);
  }
  const data = { node_id, command, queued_at, expires_at, ...(bulk === undefined ? {} : { bulk }) };
  return ok([{ type: 'NodeCommandQueued', data }]);
}
