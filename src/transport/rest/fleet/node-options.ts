/**
 * Id, name and status of a node, for a list to choose from. How a whole node is shown is in `node-view.ts`.
 * Implements `docs/contract/rest.md#port-management`.
 */
import { z } from 'zod';
import type { PresenceFacts } from '../../../telemetry/port.js';
import type { RestDeps } from '../deps.js';
import { nodeStatuses, statusOf } from './node-status.js';
import { described } from '../openapi/openapi-text.js';
import { nodeId } from '../schemas/shared-schemas.js';

export const nodeStatus = described(
  z.enum(nodeStatuses),
  '`pending` has never connected, `online` has a session now',
  'online',
);

export const nodeOption = z
  .object({ id: nodeId, name: described(z.string(), 'Its name', 'edge-1'), status: nodeStatus })
  .meta({ id: 'NodeOption', description: 'A node to choose from' });
type NodeOption = z.output<typeof nodeOption>;

/** The options of nodes in their order. @param online the nodes with a live session */
export async function nodeOptions(
  deps: RestDeps,
  nodes: readonly { readonly id: string; readonly name: string }[],
  online: ReadonlyMap<string, PresenceFacts>,
): Promise<readonly NodeOption[]> {
  const agents = await deps.projections.agents.getMany(nodes.map(({ id }) => id));
  return nodes.map(({ id, name }) => ({ id, name, status: statusOf(online.has(id), agents.get(id)) }));
}
