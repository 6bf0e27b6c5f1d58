/** Whether a node's agent is there, as answers show it. Implements `docs/contract/rest.md#nodes`, `status`. */
import type { NodeAgentFacts } from '../../domain/agents/node-agent-facts.js';
import type { PresenceFacts } from '../../telemetry/port.js';

export const nodeStatuses = ['pending', 'online', 'offline'] as const;
export type NodeStatus = (typeof nodeStatuses)[number];

/**
 * @param presence of the node's live session, undefined without one
 * @param agent undefined when the read models do not know the node yet
 */
export function statusOf(
  presence: PresenceFacts | undefined,
  agent: Pick<NodeAgentFacts, 'connected_once'> | undefined,
): NodeStatus {
  if (presence !== undefined) return 'online';
  return agent?.connected_once === true ? 'offline' : 'pending';
}
