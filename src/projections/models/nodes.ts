/**
 * Read model of nodes: what operators described and what the agent did, in one document, so that both are from the same log
 * position. Its queries are in `node-queries.ts`. Implements `docs/contract/rest.md#nodes`.
 */
import { agentEvent } from '../../domain/agents/facts.js';
import type { FleetEvent } from '../../domain/fleet/events.js';
import { fleetEvent } from '../../domain/fleet/events.js';
import { resourceOf } from '../../domain/fleet/resources.js';
import { evolveNode } from '../../domain/node/evolve.js';
import type { NodeEvent, NodeState } from '../../domain/node/node.js';
import { nodeKey } from '../../domain/node/node.js';
import { nameKey } from '../../domain/resource/names.js';
import { streams } from '../../kernel/event.js';
import type { Json } from '../../kernel/json.js';
import type { NodeAgentFacts } from '../../domain/agents/node-agent-facts.js';
import { evolveAgentFacts, neverConnected } from '../../domain/agents/node-agent-facts.js';
import type { NodeRecord } from '../port.js';
import { asJson, fromJson } from '../read-model.js';
import type { ReadModel } from '../read-model.js';
import { idOfResource } from './resources.js';
import { sortIndexes } from './sorted-list.js';
import type { SortFields } from './sorted-list.js';

export type NodeFields = SortFields & {
  readonly node: Json;
  readonly agent: Json;
  readonly connected_once: boolean;
  /** One `labelEntry` per label. */
  readonly labels: readonly string[];
};

/** A label as one string that is unique for any characters in key and value. */
export function labelEntry(key: string, value: string): string {
  return JSON.stringify([key, value]);
}

export function nodeRecord(fields: NodeFields): NodeRecord {
  return { node: fromJson<NodeState>(fields.node), agent: fromJson<NodeAgentFacts>(fields.agent) };
}

/** @param before the document before the event, whose labels stay when the node's do */
function document(node: NodeState, agent: NodeAgentFacts, before: NodeFields | undefined): NodeFields {
  const sameLabels = before !== undefined && fromJson<NodeState>(before.node).labels === node.labels;
  return {
    name_key: nameKey(node.name),
    created_at: node.created_at,
    updated_at: node.updated_at,
    node: asJson(node),
    agent: asJson(agent),
    connected_once: agent.connected_once,
    labels: sameLabels ? before.labels : Object.entries(node.labels).map(([key, value]) => labelEntry(key, value)),
  };
}

const isNodeEvent = (event: FleetEvent): event is NodeEvent => resourceOf(event).type === nodeKey.type;

export const nodes: ReadModel<NodeFields> = {
  name: 'nodes',
  indexes: [...sortIndexes, { fields: ['labels', 'name_key'] }, { fields: ['connected_once', 'name_key'] }],

  keys(event) {
    if (event.stream.startsWith(streams.agentsPrefix)) return [agentEvent(event).data.node_id];
    return idOfResource(event, 'node');
  },

  evolve(fields, event) {
    const at = event.metadata.occurred_at;
    const before = fields === undefined ? undefined : nodeRecord(fields);
    if (event.stream === streams.fleet) {
      const nodeEvent = fleetEvent(event);
      if (!isNodeEvent(nodeEvent)) return fields;
      const node = evolveNode(before?.node, nodeEvent, { at, commandId: event.metadata.command.id });
      if (node === undefined) return undefined;
      // A restored node starts without facts too, as its delete took its document: its agent's PSK is no longer valid.
      return document(node, before?.agent ?? neverConnected, fields);
    }
    // Ignore facts about a node that does not exist.
    if (fields === undefined || before === undefined) return undefined;
    const agent = evolveAgentFacts(before.agent, agentEvent(event), at, event.metadata.request_id);
    if (agent === before.agent) return fields;
    // The rest stays as it is: where no indexed field changes, no index is written.
    return { ...fields, agent: asJson(agent), connected_once: agent.connected_once };
  },
};
