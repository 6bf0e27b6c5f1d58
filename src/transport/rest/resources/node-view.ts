/**
 * A node in answers: its definition with the reports and the session of its agent. The routes are in `nodes.ts`. Implements
 * `docs/contract/rest.md#nodes`.
 */
import { z } from 'zod';
import type { NodeDefinition, NodeState } from '../../../domain/node/node.js';
import { unexpiredCandidate } from '../../../domain/node/psk.js';
import { effectiveMultiplex } from '../../../domain/settings/settings.js';
import { timestamp } from '../../../kernel/clock.js';
import type { PresenceFacts } from '../../../reports/port.js';
import { applyState, applyStates, newestPush, type ApplyState, type PushFacts } from '../../../reports/apply-state.js';
import type { RestDeps } from '../deps.js';
import { description, host, labels, name } from '../schemas/fields.js';
import { listenersShown, shownListeners } from '../fleet/listener-states.js';
import { nodeStatus } from '../fleet/node-status.js';
import { heldBy } from '../../../reports/rollouts.js';
import { statusOf } from '../../../reports/status.js';
import { resourceSchema, type Shape } from './resource-shape.js';
import { component, documented, sample } from '../schemas/documented.js';
import type { Shown } from '../answers/envelope.js';
import { applyErrors, time, timeOf } from '../schemas/shared-schemas.js';

export const nodeShape: Shape<NodeDefinition> = {
  name: { about: 'Name, unique among nodes', example: 'edge-1', request: name },
  description: {
    about: 'Free text',
    example: 'rack 4, left',
    request: description,
    initial: null,
  },
  address: {
    about: 'Host name or IP address that other nodes dial; null for the addresses that the agent reports',
    example: 'edge-1.example',
    request: host.nullable(),
    initial: null,
  },
  labels: {
    about: 'Free labels, to filter by',
    example: { region: 'eu' },
    request: labels,
    initial: {},
  },
};

export const exampleFingerprint = 'SHA256:LHBtW1vyR50BQz0eP9XcPV-V_9C0egqGEXSoPQsAuVY';

export const candidateSchema = z
  .object({
    fingerprint: documented(z.string(), 'Of the second PSK', exampleFingerprint),
    issued_at: timeOf('When it was issued'),
    expires_at: timeOf('When it expires, if no agent has used it', sample.later),
  })
  .nullable()
  .meta({ id: 'PskCandidate', description: 'A second PSK that is valid beside the first; null without one' });

/** @param now milliseconds since the epoch */
export function candidateOf(node: NodeState, now: number): Shown<typeof candidateSchema> {
  const candidate = unexpiredCandidate(node, now);
  if (candidate === undefined) return null;
  const { fingerprint, issued_at, expires_at } = candidate;
  return { fingerprint, issued_at, expires_at };
}

/** The fields that an answer adds to the definition of a node. */
const derived = {
  status: nodeStatus,
  psk_fingerprint: documented(z.string().nullable(), 'Of the current PSK; null without one', exampleFingerprint),
  psk_issued_at: documented(time.nullable(), 'When the current PSK was issued', sample.time),
  psk_candidate: candidateSchema,
  multiplex: documented(
    z.boolean(),
    'Whether links between nodes are multiplexed here, by the connectivity settings',
    true,
  ),
  multiplex_port: documented(z.int().nullable(), 'On which port', 7443),
  reported_multiplex: documented(z.boolean().nullable(), 'Value that the agent reported when it connected', true),
  reported_multiplex_port: documented(z.int().nullable(), 'Port that the agent reported when it connected', 7443),
  duplicate_agent: documented(z.boolean(), 'Two agents take turns with the PSK of this node', false),
  version_conflict_at: documented(
    time.nullable(),
    'When the agent named a configuration that this service has not made; null if it did not',
    null,
  ),
  agent_version: documented(z.string().nullable(), 'As the agent says', '0.1.0'),
  public_ipv4: documented(z.string().nullable(), 'As the agent says', '192.0.2.10'),
  public_ipv6: documented(z.string().nullable(), 'As the agent says', '2001:db8::10'),
  detected_addresses: documented(z.array(z.string()), 'All addresses that the agent found', ['192.0.2.10']),
  cpu_usage: documented(z.number().nullable(), 'At the last heartbeat, 0 to 1', 0.25),
  memory_usage: documented(z.number().nullable(), 'At the last heartbeat, 0 to 1', 0.5),
  uptime_seconds: documented(z.int().nullable(), 'At the last heartbeat', 86_400),
  last_seen_at: documented(time.nullable(), 'When the last heartbeat came', sample.later),
  generation: documented(z.int().nullable(), 'The newest compiled for the node, rejected or not', 42),
  applied_generation: documented(
    z.int().nullable(),
    'The last generation that the agent applied, whatever it rejected since',
    42,
  ),
  apply: component('NodeApply', 'How far the node is with its newest generation', {
    state: documented(z.enum(applyStates), 'How far the node is with its generation', 'applied'),
    generation: documented(z.int().nullable(), 'The generation of the state', 42),
    at: documented(time.nullable(), 'Since when', sample.later),
    errors: applyErrors,
  }),
  listeners: shownListeners,
  held_by: documented(z.string().nullable(), 'The rollout that holds the node back; null for none', null),
  features: documented(z.array(z.string()), 'What the agent says that it can run and do; empty if it does not say', [
    'tcp_raw',
    'tcp_tls',
  ]),
};

export const nodeSchema = resourceSchema(
  'Node',
  'A gateway node, with the last reports of its agent',
  nodeShape,
  derived,
);
export type NodeView = NodeDefinition & Shown<typeof nodeSchema>;

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

/** How far a node is with its newest generation. */
export function applyOf(deps: RestDeps, nodeId: string): ApplyState {
  const push = pushFacts(deps, nodeId, deps.reports.presence(nodeId));
  return applyState(deps.fleet.generation(nodeId) ?? null, deps.agentFacts.of(nodeId), push);
}

export function nodeView(deps: RestDeps, node: NodeState): NodeView {
  const [agent, vitals] = [deps.agentFacts.of(node.id), deps.reports.vitals(node.id)];
  const apply = applyOf(deps, node.id);
  const { multiplex, multiplex_port } = effectiveMultiplex(deps.fleet.settings(), node.id);
  // One literal, because spreads make an object of this size ten times as slowly.
  return {
    id: node.id,
    name: node.name,
    description: node.description,
    address: node.address,
    labels: node.labels,
    status: statusOf(deps, node.id),
    psk_fingerprint: node.psk?.fingerprint ?? null,
    psk_issued_at: node.psk?.issued_at ?? null,
    psk_candidate: candidateOf(node, deps.clock.now()),
    multiplex,
    multiplex_port,
    reported_multiplex: agent.reported_multiplex,
    reported_multiplex_port: agent.reported_multiplex_port,
    duplicate_agent: agent.duplicate_until !== null && Date.parse(agent.duplicate_until) > deps.clock.now(),
    version_conflict_at: agent.version_conflict_at,
    agent_version: agent.agent_version,
    public_ipv4: node.public_ipv4,
    public_ipv6: node.public_ipv6,
    detected_addresses: agent.detected_addresses,
    cpu_usage: vitals.cpu_usage,
    memory_usage: vitals.memory_usage,
    uptime_seconds: vitals.uptime_seconds,
    last_seen_at: vitals.last_seen_at,
    generation: deps.fleet.generation(node.id) ?? null,
    applied_generation: agent.applied?.generation ?? null,
    apply,
    listeners: listenersShown(deps, [{ nodeId: node.id, keys: deps.fleet.liveListeners(node.id) }]),
    held_by: heldBy(deps, node.id),
    features: agent.features,
    managed_by: node.managed_by ?? null,
    created_at: node.created_at,
    updated_at: node.updated_at,
    version: node.version,
  };
}
