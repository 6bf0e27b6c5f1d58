/**
 * Read model of nodes: what operators described and what the agent did, on one document, so that the two are never out
 * of step. Its queries are in `node-queries.ts`. Implements `docs/contract/rest.md#nodes`.
 */
import type { FleetEvent } from '../../domain/fleet/events.js';
import { resourceOf } from '../../domain/fleet/resource.js';
import { evolveNode } from '../../domain/node/evolve.js';
import type { NodeEvent, NodeState } from '../../domain/node/node.js';
import { agentEvent, fleetEvent } from '../../domain/log/upcast.js';
import { streams } from '../../kernel/event.js';
import type { Json } from '../../kernel/json.js';
import { evolveAgentFacts, neverConnected } from './agent-facts.js';
import type { NodeAgentFacts, NodeRecord } from '../port.js';
import { asJson, fromJson } from '../read-model.js';
import type { ReadModel } from '../read-model.js';
import { sortFields, sortIndexes } from './sorted-list.js';
import type { SortFields } from './sorted-list.js';

export type NodeFields = SortFields & {
  readonly node: Json;
  readonly agent: Json;
  readonly connected_once: boolean;
  /** One entry per label, see `labelEntry`. */
  readonly labels: readonly string[];
};

/** A label as one string that can't be mistaken for another, whatever characters key and value have. */
export function labelEntry(key: string, value: string): string {
  return JSON.stringify([key, value]);
}

export function nodeRecord(fields: NodeFields): NodeRecord {
  return { node: fromJson<NodeState>(fields.node), agent: fromJson<NodeAgentFacts>(fields.agent) };
}

function document(node: NodeState, agent: NodeAgentFacts): NodeFields {
  return {
    ...sortFields(node),
    node: asJson(node),
    agent: asJson(agent),
    connected_once: agent.connected_once,
    labels: Object.entries(node.labels).map(([key, value]) => labelEntry(key, value)),
  };
}

const isNodeEvent = (event: FleetEvent): event is NodeEvent => resourceOf(event).type === 'node';

export const nodes: ReadModel<NodeFields> = {
  name: 'nodes',
  indexes: [...sortIndexes, { fields: ['labels', 'name_key'] }, { fields: ['connected_once', 'name_key'] }],

  keys(event) {
    if (event.stream.startsWith(streams.agentsPrefix)) return [agentEvent(event).data.node_id];
    if (event.stream !== streams.fleet) return [];
    const resource = resourceOf(fleetEvent(event));
    return resource.type === 'node' ? [resource.id] : [];
  },

  evolve(fields, event) {
    const at = event.metadata.occurred_at;
    const before = fields === undefined ? undefined : nodeRecord(fields);
    if (event.stream === streams.fleet) {
      const own = fleetEvent(event);
      if (!isNodeEvent(own)) return fields;
      const node = evolveNode(before?.node, own, at, event.metadata.command.id);
      if (node === undefined) return undefined;
      // A node that comes back after a delete begins anew: its agent has no PSK any more.
      return document(node, own.type === 'NodeCreated' ? neverConnected : (before?.agent ?? neverConnected));
    }
    // What an agent did after its node was deleted, or before anybody knew it, is of no node.
    if (before === undefined) return undefined;
    return document(before.node, evolveAgentFacts(before.agent, agentEvent(event), at));
  },
};
