/**
 * A node as it is shown: intent, agent's facts, telemetry, presence and generation in one. Not the routes (`nodes.ts`).
 * Implements `docs/contract/rest.md#nodes`.
 */
import { z } from 'zod';
import type { NodeState } from '../../commands/handlers-port.js';
import { timestamp } from '../../kernel/clock.js';
import { effectiveMultiplex } from '../../projections/derived.js';
import type { NodeAgentFacts, NodeRecord } from '../../projections/port.js';
import type { NodeVitals, PresenceFacts } from '../../telemetry/port.js';
import { applyState, newestPush } from './apply-state.js';
import type { PushFacts } from './apply-state.js';
import type { RestDeps } from './deps.js';
import { applyErrors, time, timestamps } from './shared-schemas.js';

export const nodeFields = {
  id: z.string(),
  name: z.string(),
  description: z.string().nullable(),
  address: z.string().nullable(),
  labels: z.record(z.string(), z.string()),
  status: z.enum(['pending', 'online', 'offline']),
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
    state: z.enum(['none', 'pushed', 'applied', 'rejected']),
    generation: z.int().nullable(),
    at: time.nullable(),
    errors: applyErrors,
  }),
  ...timestamps,
};

export const nodeSchema = z.object(nodeFields).meta({ id: 'Node' });
export type NodeView = z.output<typeof nodeSchema>;

/** The facts of a node whose agent has never been seen, or whose record the read models do not hold yet. */
const noFacts: NodeAgentFacts = {
  connected_once: false,
  agent_version: null,
  detected_addresses: [],
  reported_multiplex: null,
  reported_multiplex_port: null,
  applied: null,
  rejected: null,
  duplicate_until: null,
  version_conflict_at: null,
};

/** Views of several nodes, with one read of their vitals for all of them. */
export async function nodeViews(
  deps: RestDeps,
  records: readonly NodeRecord[],
  online: ReadonlyMap<string, PresenceFacts>,
): Promise<NodeView[]> {
  const vitals = await deps.telemetry.vitals(records.map((record) => record.node.id));
  return records.map(({ node, agent }) => nodeView(deps, node, agent, vitals.get(node.id), online.get(node.id)));
}

/** The view of one node, with what its agent did where the read models know it. */
export async function oneNodeView(
  deps: RestDeps,
  node: NodeState,
  agent: NodeAgentFacts | undefined,
): Promise<NodeView> {
  const [presence, vitals] = await Promise.all([deps.telemetry.presence(node.id), deps.telemetry.vitals([node.id])]);
  return nodeView(deps, node, agent ?? noFacts, vitals.get(node.id), presence);
}

/** The view of a node that was made just now: no agent can have been seen yet, so no store is asked. */
export function newNodeView(deps: RestDeps, node: NodeState): NodeView {
  return nodeView(deps, node, noFacts, undefined, undefined);
}

/** What was pushed to a node last, here or by the instance that holds its session. */
export function pushFacts(deps: RestDeps, nodeId: string, presence: PresenceFacts | undefined): PushFacts | undefined {
  const own = deps.delivery.pushed(nodeId);
  return newestPush(
    own === undefined ? undefined : { generation: own.generation, at: timestamp(own.at) },
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
    id: node.id,
    name: node.name,
    description: node.description,
    address: node.address,
    labels: { ...node.labels },
    status: presence !== undefined ? 'online' : agent.connected_once ? 'offline' : 'pending',
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
    created_at: node.created_at,
    updated_at: node.updated_at,
    version: node.version,
  };
}
