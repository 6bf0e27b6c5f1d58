/**
 * The status of a node, and the nodes to choose from. `resources/node-view.ts` shows a whole node. Implements
 * `docs/contract/rest.md#nodes`, `status`, and `docs/contract/rest.md#port-management`.
 */
import { z } from 'zod';
import { nodeStatuses, statusOf } from '../../../reports/status.js';
import type { RestDeps } from '../deps.js';
import { component, documented } from '../schemas/documented.js';
import { nodeId } from '../schemas/shared-schemas.js';

export const nodeStatus = documented(
  z.enum(nodeStatuses),
  '`pending`: never connected, `online`: has a session now',
  'online',
);

export const nodeOption = component('NodeOption', 'A node to choose from', {
  id: nodeId,
  name: documented(z.string(), 'Its name', 'edge-1'),
  status: nodeStatus,
});
type NodeOption = z.output<typeof nodeOption>;

/** The options for nodes, in the same order. */
export function nodeOptions(
  deps: RestDeps,
  nodes: readonly { readonly id: string; readonly name: string }[],
): readonly NodeOption[] {
  return nodes.map(({ id, name }) => ({ id, name, status: statusOf(deps, id) }));
}
