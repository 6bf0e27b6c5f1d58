/**
 * Whether a node's agent is there, as answers show it, and the nodes to choose from. How a whole node is shown is in
 * `resources/node-view.ts`. Implements `docs/contract/rest.md#nodes`, `status`, and `docs/contract/rest.md#port-management`.
 */
import { z } from 'zod';
import type { NodeAgentFacts } from '../../../domain/agents/node-agent-facts.js';
import type { PresenceFacts } from '../../../reports/port.js';
import type { RestDeps } from '../deps.js';
import { documented } from '../openapi/openapi-text.js';
import { nodeId } from '../schemas/shared-schemas.js';

export const nodeStatuses = ['pending', 'online', 'offline'] as const;
export type NodeStatus = (typeof nodeStatuses)[number];

/** The presence of each of a few nodes that has a live session. @throws ServiceError `unavailable` */
export async function presencesOf(
  { telemetry }: Pick<RestDeps, 'telemetry'>,
  nodeIds: readonly string[],
): Promise<ReadonlyMap<string, PresenceFacts>> {
  const found = await Promise.all(nodeIds.map(async (id) => [id, await telemetry.presence(id)] as const));
  return new Map(found.flatMap(([id, presence]) => (presence === undefined ? [] : [[id, presence] as const])));
}

/**
 * @param online whether the node has a live session
 * @param agent undefined when the read models do not know the node yet
 */
export function statusOf(online: boolean, agent: Pick<NodeAgentFacts, 'connected_once'> | undefined): NodeStatus {
  if (online) return 'online';
  return agent?.connected_once === true ? 'offline' : 'pending';
}

export const nodeStatus = documented(
  z.enum(nodeStatuses),
  '`pending` has never connected, `online` has a session now',
  'online',
);

export const nodeOption = z
  .object({ id: nodeId, name: documented(z.string(), 'Its name', 'edge-1'), status: nodeStatus })
  .meta({ id: 'NodeOption', description: 'A node to choose from' });
type NodeOption = z.output<typeof nodeOption>;

/** The options of nodes in their order. @param online the nodes with a live session */
export function nodeOptions(
  { agentFacts }: RestDeps,
  nodes: readonly { readonly id: string; readonly name: string }[],
  online: ReadonlyMap<string, PresenceFacts>,
): readonly NodeOption[] {
  return nodes.map(({ id, name }) => ({ id, name, status: statusOf(online.has(id), agentFacts.of(id)) }));
}
