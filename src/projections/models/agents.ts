/**
 * Stored read model of agents: the history of each node's agent, folded from the facts of `svc-agents-*`. The node
 * itself is in the committed fleet, and telemetry in `src/telemetry`. Implements `docs/contract/rest.md#nodes`.
 */
import { agentEvent } from '../../domain/agents/facts.js';
import type { NodeAgentFacts } from '../../domain/agents/node-agent-facts.js';
import { evolveAgentFacts, neverConnected } from '../../domain/agents/node-agent-facts.js';
import { fleetEvent } from '../../domain/fleet/resources.js';
import { streams } from '../../kernel/event.js';
import type { RecordedEvent } from '../../kernel/event.js';
import type { Json } from '../../kernel/json.js';
import type { Collection } from '../../storage/read-store.js';
import type { Projections } from '../port.js';
import { asJson, fromJson } from '../read-model.js';
import type { ReadModel } from '../read-model.js';
import { tuning } from '../tuning.js';

export type AgentFields = { readonly agent: Json; readonly group: 'connected' | null; readonly since: string };

const documentOf = (agent: NodeAgentFacts): AgentFields => ({
  agent: asJson(agent),
  group: agent.connected_once ? 'connected' : null,
  since: '',
});
const factsOf = ({ agent }: AgentFields): NodeAgentFacts => fromJson<NodeAgentFacts>(agent);

/** The life of a node begins or ends; undefined for any other event of the fleet. */
function lifeOf(event: RecordedEvent): { readonly nodeId: string; readonly lives: boolean } | undefined {
  const { type, data } = fleetEvent(event);
  switch (type) {
    case 'NodeCreated':
    // A restored node starts without facts too: its agent's PSK is no longer valid.
    case 'NodeRestored':
      return { nodeId: data.node_id, lives: true };
    case 'NodeDeleted':
      return { nodeId: data.node_id, lives: false };
    default:
      return undefined;
  }
}

export const agents: ReadModel<AgentFields> = {
  name: 'agents',
  index: { group: 'group', order: 'since' },

  keys(event) {
    if (event.stream.startsWith(streams.agentsPrefix)) return [agentEvent(event).data.node_id];
    const life = event.stream === streams.fleet ? lifeOf(event) : undefined;
    return life === undefined ? [] : [life.nodeId];
  },

  evolve(fields, event) {
    if (event.stream === streams.fleet) return lifeOf(event)?.lives === true ? documentOf(neverConnected) : undefined;
    // Ignore facts about a node that does not exist.
    if (fields === undefined) return undefined;
    const before = factsOf(fields);
    const { occurred_at, request_id } = event.metadata;
    const agent = evolveAgentFacts(before, agentEvent(event), occurred_at, request_id);
    return agent === before ? fields : documentOf(agent);
  },
};

/** @param open returns the collection, or throws `unavailable` while the read models cannot be queried */
export function agentQueries(open: () => Collection<AgentFields>): Projections['agents'] {
  return {
    async get(nodeId) {
      const document = await open().get(nodeId);
      return document === undefined ? undefined : factsOf(document.fields);
    },
    async getMany(nodeIds) {
      const documents = await open().getMany(nodeIds);
      return new Map(documents.map(({ id, fields }) => [id, factsOf(fields)]));
    },
    async connected() {
      const ids = new Set<string>();
      for (let skip = 0; ; skip += tuning.scanDocuments) {
        const range = { groups: ['connected'], direction: 'asc', skip, limit: tuning.scanDocuments } as const;
        const items = await open().find(range);
        for (const { id } of items) ids.add(id);
        if (items.length < tuning.scanDocuments) return ids;
      }
    },
  };
}
