/**
 * Which resources the reports of a node are credited to in history, according to its deployed chains. Computed again when the
 * node's generation changes. Implements decision 360.
 */
import { liveDefinition, upstreamOf } from '../../domain/chain/chain.js';
import { listenerOf } from '../../domain/chain/transports.js';
import { listenerKey } from '../../domain/port-table/port-table.js';
import { createLru } from '../../kernel/lru.js';
import type { FleetQueries } from '../../projections/fleet/fleet-queries.js';
import { reportedKey } from '../listener-table.js';
import type { Carriers } from '../port.js';

/** Twice as many nodes as a fleet is built for. */
const rememberedNodes = 20_000;

export function createCarriers(fleet: FleetQueries): (nodeId: string) => Carriers {
  const known = createLru<{ readonly generation: number | undefined; readonly carriers: Carriers }>(rememberedNodes);
  return (nodeId) => {
    const generation = fleet.generation(nodeId);
    const last = known.get(nodeId);
    if (last !== undefined && last.generation === generation) return last.carriers;
    const carriers = carriersOf(fleet, nodeId);
    known.set(nodeId, { generation, carriers });
    return carriers;
  };
}

function carriersOf(fleet: FleetQueries, nodeId: string): Carriers {
  const chains = new Set<string>();
  const ends = new Map<string, readonly string[]>();
  const chainOfListener = new Map<string, string>();
  const upstreams = new Set<string>();
  const starts = new Set<string>();
  const rows = new Map(fleet.portRows(nodeId).map((row) => [listenerKey(row), row]));
  for (const { type, id } of fleet.referrers('node', nodeId)) {
    const chain = type === 'l4_chain' ? fleet.chain(id) : undefined;
    const live = chain === undefined ? null : liveDefinition(chain);
    if (live === null || !live.hops.some((hop) => hop.node_id === nodeId)) continue;
    chains.add(id);
    const [first, last] = [live.hops[0], live.hops.at(-1)];
    const upstream = last?.node_id === nodeId ? upstreamOf(live) : undefined;
    if (upstream !== undefined) upstreams.add(upstream);
    const begins = first?.node_id === nodeId;
    ends.set(id, [...(begins ? [id] : []), ...(upstream === undefined ? [] : [upstream])]);
    if (first === undefined || !begins) continue;
    const listener = listenerOf(first);
    const key = reportedKey(listener);
    starts.add(key);
    const routes = rows.get(listenerKey(listener))?.routes ?? [];
    if (routes.every(({ resourceId, deployed }) => resourceId === id || !deployed)) {
      chainOfListener.set(key, id);
    }
  }
  return { chains, ends, chainOfListener, begins: starts, upstreams };
}
