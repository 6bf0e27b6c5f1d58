/**
 * Id, name and status of a node, for a list to choose from. How a whole node is shown is in `node-view.ts`.
 * Implements `docs/contract/rest.md#port-management`.
 */
import { z } from 'zod';
import type { PresenceFacts } from '../../telemetry/port.js';
import type { RestDeps } from './deps.js';
import { nodeStatuses, statusOf } from './node-status.js';

export const nodeOption = z.object({ id: z.string(), name: z.string(), status: z.enum(nodeStatuses) });
type NodeOption = z.output<typeof nodeOption>;

/** The options of nodes in their order. @param online the nodes with a live session */
export async function nodeOptions(
  deps: RestDeps,
  nodes: readonly { readonly id: string; readonly name: string }[],
  online: ReadonlyMap<string, PresenceFacts>,
): Promise<readonly NodeOption[]> {
  const records = await deps.projections.nodes.getMany(nodes.map(({ id }) => id));
  const agents = new Map(records.map(({ node, agent }) => [node.id, agent]));
  return nodes.map(({ id, name }) => ({ id, name, status: statusOf(online.get(id), agents.get(id)) }));
}
