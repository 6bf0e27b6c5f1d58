/**
 * The live listeners of each node, remembered by its generation: whatever changes them gives the node a new one.
 * Counting the listeners of all nodes after every command would take too long. Implements
 * `docs/contract/rest.md#dashboard`.
 */
import type { Fleet } from '../../domain/fleet/fleet.js';
import { liveListeners } from '../../domain/port-table/port-table.js';
import { createLru } from '../../kernel/lru.js';
import { tuning } from '../tuning.js';

/** @returns a function that gives the listeners of a node, as `listenerKey` names them; none for an unknown node */
export function createLiveListeners(fleet: () => Fleet): (nodeId: string) => ReadonlySet<string> {
  const known = createLru<string, { readonly generation: number; readonly live: ReadonlySet<string> }>({
    maxEntries: tuning.rememberedNodes,
  });
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
