/** Whether a node's agent is there, as answers show it. Implements `docs/contract/rest.md#nodes`, `status`. */
import type { NodeAgentFacts } from '../../../domain/agents/node-agent-facts.js';
import type { PresenceFacts } from '../../../telemetry/port.js';
import type { RestDeps } from '../deps.js';

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
