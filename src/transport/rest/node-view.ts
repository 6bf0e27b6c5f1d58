/**
 * A node as answers show it: definition, agent facts, telemetry, presence and generation in one. Not the routes
 * (`nodes.ts`). Implements `docs/contract/rest.md#nodes`.
 */
import { z } from 'zod';
import { neverConnected } from '../../domain/agents/node-agent-facts.js';
import type { NodeAgentFacts } from '../../domain/agents/node-agent-facts.js';
import type { NodeDefinition, NodeState } from '../../domain/node/node.js';
import { nodeFields } from '../../domain/node/node.js';
import { pick } from '../../domain/resource/lifecycle.js';
import type { ResourceMeta } from '../../domain/resource/meta.js';
import { effectiveMultiplex } from '../../domain/settings/settings.js';
import { timestamp } from '../../kernel/clock.js';
import type { NodeRecord } from '../../projections/port.js';
import type { NodeVitals, PresenceFacts } from '../../telemetry/port.js';
import { applyState, applyStates, newestPush } from './apply-state.js';
import type { PushFacts } from './apply-state.js';
import type { RestDeps } from './deps.js';
import { description, host, labels, name } from './fields.js';
import { nodeStatuses, statusOf } from './node-status.js';
import type { Shape } from './resource-shape.js';
import { resourceSchema } from './resource-shape.js';
import { applyErrors, time } from './shared-schemas.js';

export const nodeShape: Shape<NodeDefinition> = {
  name: { request: name, response: z.string() },
  description: { request: description, response: z.string().nullable(), initial: null },
  address: { request: host.nullable(), response: z.string().nullable(), initial: null },
  labels: { request: labels, response: z.record(z.string(), z.string()), initial: {} },
};

/** What an answer adds to the definition of a node. */
const derived = {
  status: z.enum(nodeStatuses),
  psk_fingerprint: z.string().nullable(),
  psk_issued_at: time.nullable(),
  multiplex: z.boolean(),
  multiplex_port: z.int().nullable(),
  reported_multiplex: z.boolean().nullable(),
  reported_multiplex_port: z.int().nullable(),
  duplicate_agent: z.boolean(),
  version_conflict_at: time.nullable(),
  agent_version: z.string().nullable(),
  public_ipv4: z.string().nullable(),
  public_ipv6: z.string().nullable(),
  detected_addresses: z.array(z.string()),
  cpu_usage: z.number().nullable(),
  memory_usage: z.number().nullable(),
  uptime_seconds: z.number().nullable(),
  last_seen_at: time.nullable(),
  generation: z.int().nullable(),
  applied_generation: z.int().nullable(),
  apply: z.object({
    state: z.enum(applyStates),
    generation: z.int().nullable(),
    at: time.nullable(),
    errors: applyErrors,
  }),
};

export const nodeSchema = resourceSchema('Node', nodeShape, derived);
export type NodeView = ResourceMeta & NodeDefinition & z.output<z.ZodObject<typeof derived>>;

/** Views of several nodes, with one read of their vitals for all of them. */
export async function nodeViews(
  deps: RestDeps,
  records: readonly NodeRecord[],
  online: ReadonlyMap<string, PresenceFacts>,
): Promise<NodeView[]> {
  const vitals = await deps.telemetry.vitals(records.map((record) => record.node.id));
  return records.map(({ node, agent }) => nodeView(deps, node, agent, vitals.get(node.id), online.get(node.id)));
}

/** The view of one node. @param agent undefined when the read models do not know the node yet */
export async function oneNodeView(
  deps: RestDeps,
  node: NodeState,
  agent: NodeAgentFacts | undefined,
): Promise<NodeView> {
  const [presence, vitals] = await Promise.all([deps.telemetry.presence(node.id), deps.telemetry.vitals([node.id])]);
  return nodeView(deps, node, agent ?? neverConnected, vitals.get(node.id), presence);
}

/** The view of a node that was just created. No agent can have connected yet, so no store is read. */
export function newNodeView(deps: RestDeps, node: NodeState): NodeView {
  return nodeView(deps, node, neverConnected, undefined, undefined);
}

/** The last push to a node, by this instance or by the one that holds its session. */
export function pushFacts(deps: RestDeps, nodeId: string, presence: PresenceFacts | undefined): PushFacts | undefined {
  const local = deps.delivery.pushed(nodeId);
  return newestPush(
    local === undefined ? undefined : { generation: local.generation, at: timestamp(local.at) },
    presence === undefined || presence.pushed_generation === 0
      ? undefined
      : { generation: presence.pushed_generation, at: presence.pushed_at },
  );
}

function nodeView(
  deps: RestDeps,
  node: NodeState,
  agent: NodeAgentFacts,
  vitals: NodeVitals | undefined,
  presence: PresenceFacts | undefined,
): NodeView {
  const generation = deps.delivery.generation(node.id) ?? null;
  const apply = applyState(generation, agent, pushFacts(deps, node.id, presence));
  return {
    ...pick(node, ['id', ...nodeFields]),
    status: statusOf(presence, agent),
    psk_fingerprint: node.psk?.fingerprint ?? null,
    psk_issued_at: node.psk?.issued_at ?? null,
    ...effectiveMultiplex(deps.delivery.settings(), node.id),
    reported_multiplex: agent.reported_multiplex,
    reported_multiplex_port: agent.reported_multiplex_port,
    duplicate_agent: agent.duplicate_until !== null && Date.parse(agent.duplicate_until) > deps.clock.now(),
    version_conflict_at: agent.version_conflict_at,
    agent_version: agent.agent_version,
    public_ipv4: node.public_ipv4,
    public_ipv6: node.public_ipv6,
    detected_addresses: [...agent.detected_addresses],
    cpu_usage: vitals?.cpu_usage ?? null,
    memory_usage: vitals?.memory_usage ?? null,
    uptime_seconds: vitals?.uptime_seconds ?? null,
    last_seen_at: vitals?.last_seen_at ?? null,
    generation,
    applied_generation: agent.applied?.generation ?? null,
    apply: { ...apply, errors: [...apply.errors] },
    ...pick(node, ['created_at', 'updated_at', 'version']),
  };
}
