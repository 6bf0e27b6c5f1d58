/**
 * The links from one node to others that resources intend, current and deployed. Agents measure them; that is in REST's
 * `link-measurements.ts`. Implements `docs/contract/rest.md#nodes`, `GET /api/nodes/links`.
 */
import type { Fleet } from '../fleet/fleet.js';
import type { AnyState } from '../fleet/resources.js';
import { resourceOfType } from '../fleet/resources.js';
import { splitOwner } from '../references/references.js';
import type { RuleOrigin } from '../snapshot/snapshot.js';

export interface IntendedLink {
  readonly fromNodeId: string;
  readonly toNodeId: string;
  readonly kind: RuleOrigin['resource_type'];
  readonly resourceId: string;
  /** The endpoints that are dialled, as rules name them; none while no address is known. */
  readonly endpoints: readonly string[];
}

/** The links from a node, one for each node that it leads to and each resource, by node, kind and resource. */
export function intendedLinks(fleet: Fleet, nodeId: string): readonly IntendedLink[] {
  const links = new Map<string, IntendedLink>();
  for (const owner of fleet.referrersOf('node', nodeId)) {
    const { type, id } = splitOwner(owner);
    const state = fleet.get<AnyState>({ type }, id);
    if (state === undefined) continue;
    for (const { toNodeId, endpoint } of resourceOfType(type)?.compiled?.linksFrom(fleet, state, nodeId) ?? []) {
      const key = `${toNodeId}/${owner}`;
      const known = links.get(key)?.endpoints ?? [];
      const endpoints = endpoint === '' || known.includes(endpoint) ? known : [...known, endpoint];
      // Only resources whose rules have an origin have links.
      const kind = type as IntendedLink['kind'];
      links.set(key, { fromNodeId: nodeId, toNodeId, kind, resourceId: id, endpoints });
    }
  }
  return [...links].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, link]) => link);
}
