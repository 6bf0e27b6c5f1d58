/**
 * Held in memory, from the committed fleet. What nodes should have running as they are deployed: listeners, and links to
 * other nodes. Implements `docs/contract/rest.md#nodes`, `listeners` and `GET /api/nodes/links`.
 */
import type { Fleet } from '../domain/fleet/fleet.js';
import { intendedLinks, linksOfNode } from '../domain/port-table/intended-links.js';
import { liveListeners } from '../domain/port-table/port-table.js';
import { createLru } from '../kernel/lru.js';
import type { FleetQueries } from './port.js';
import { tuning } from './tuning.js';

export function listenerIntents(fleet: () => Fleet): Pick<FleetQueries, 'liveListeners' | 'links' | 'linksOfNode'> {
  return {
    liveListeners: createLiveListeners(fleet),
    links: (nodeId) => intendedLinks(fleet(), nodeId),
    linksOfNode: (nodeId) => linksOfNode(fleet(), nodeId),
  };
}

/** @returns a function that gives the listeners of a node, as `listenerKey` names them; none for an unknown node */
function createLiveListeners(fleet: () => Fleet): (nodeId: string) => ReadonlySet<string> {
  const known = createLru<{ readonly generation: number; readonly live: ReadonlySet<string> }>(tuning.rememberedNodes);
  return (nodeId) => {
    const generation = fleet().generationOf(nodeId);
    if (generation === undefined) return new Set();
    const last = known.get(nodeId);
    if (last?.generation === generation) return last.live;
    const live = liveListeners(fleet(), nodeId);
    known.set(nodeId, { generation, live });
    return live;
  };
}
