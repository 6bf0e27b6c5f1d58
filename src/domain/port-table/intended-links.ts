/**
 * The links between nodes that resources intend, by current and deployed definitions. REST adds what agents measure
 * (`src/reports/link-samples.ts`). Implements `docs/contract/rest.md#nodes`, `GET /api/nodes/links`.
 */
import type { Fleet } from '../fleet/fleet.js';
import { splitOwner, type Owner } from '../references/references.js';
import type { RuleOrigin } from '../snapshot/snapshot.js';

export interface IntendedLink {
  readonly fromNodeId: string;
  readonly toNodeId: string;
  readonly kind: RuleOrigin['resource_type'];
  readonly resourceId: string;
  /** The dialled endpoints, as rules name them; none while no address is known. */
  readonly endpoints: readonly string[];
}

/** The links from a node, one per target node and resource, sorted by node, kind and resource. */
export function intendedLinks(fleet: Fleet, nodeId: string): readonly IntendedLink[] {
  return sorted([...fleet.referrersOf('node', nodeId)].flatMap((owner) => linksFrom(fleet, owner, nodeId)));
}

/** The links from a node, then those to it. */
export function linksOfNode(fleet: Fleet, nodeId: string): readonly IntendedLink[] {
  const towards = [...fleet.referrersOf('node', nodeId)].flatMap((owner) =>
    nodesOf(fleet, owner)
      .flatMap((other) => linksFrom(fleet, owner, other))
      .filter(({ toNodeId }) => toNodeId === nodeId),
  );
  return [...intendedLinks(fleet, nodeId), ...sorted(towards)];
}

function sorted(links: readonly IntendedLink[]): readonly IntendedLink[] {
  const key = ({ fromNodeId, toNodeId, kind, resourceId }: IntendedLink): string =>
    `${fromNodeId}/${toNodeId}/${kind}/${resourceId}`;
  return links.toSorted((a, b) => (key(a) < key(b) ? -1 : 1));
}

/** The nodes that a resource names, in its current or deployed definition. */
function nodesOf(fleet: Fleet, owner: Owner): readonly string[] {
  const resource = fleet.resolve(owner);
  const named = resource?.declaration.indexed?.references(resource.state) ?? [];
  const nodes = [...named].map(splitOwner).filter((one) => one.type === 'node');
  return [...new Set(nodes.map((node) => node.id))];
}

/** The links of one resource from one node. */
function linksFrom(fleet: Fleet, owner: Owner, nodeId: string): readonly IntendedLink[] {
  const resource = fleet.resolve(owner);
  if (resource === undefined) return [];
  const { type, id, state, declaration } = resource;
  const links = new Map<string, IntendedLink>();
  for (const { toNodeId, endpoint } of declaration.compiled?.linksFrom(fleet, state, nodeId) ?? []) {
    const known = links.get(toNodeId)?.endpoints ?? [];
    const endpoints = endpoint === '' || known.includes(endpoint) ? known : [...known, endpoint];
    // Only resources whose rules have an origin have links.
    const kind = type as IntendedLink['kind'];
    links.set(toNodeId, { fromNodeId: nodeId, toNodeId, kind, resourceId: id, endpoints });
  }
  return [...links.values()];
}
