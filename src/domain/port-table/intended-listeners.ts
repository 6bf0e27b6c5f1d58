/**
 * The listeners that the current definitions of enabled resources intend on a node; routes on one listener are merged. Not
 * the listeners that agents report. Implements `docs/contract/domain.md#l4-chain`, listener intent.
 */
import type { Fleet } from '../fleet/fleet.js';
import { resourceOfType } from '../fleet/resources.js';
import type { AnyState } from '../fleet/resources.js';
import type { IntendedListener, IntendedRoute } from '../listeners/intent.js';
import { splitOwner } from '../references/references.js';

const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);
const routeOrder = ({ source, matchKind, matchValue }: IntendedRoute): string =>
  `${source}\u0000${matchKind}\u0000${matchValue}`;

/** The listeners of one node, by transport, port and address; routes by source, match kind and value. */
export function intendedListeners(fleet: Fleet, nodeId: string): readonly IntendedListener[] {
  const listeners = new Map<string, IntendedListener>();
  for (const owner of fleet.referrersOf('node', nodeId)) {
    const { type, id } = splitOwner(owner);
    const state = fleet.get<AnyState>({ type }, id);
    if (state === undefined) continue;
    for (const listener of resourceOfType(type)?.compiled?.intendedOn(fleet, state, nodeId) ?? []) {
      const key = `${listener.transport}/${listener.listenPort}/${listener.listenAddr}`;
      const routes = [...(listeners.get(key)?.routes ?? []), ...listener.routes];
      listeners.set(key, { ...listener, routes });
    }
  }
  return [...listeners.values()]
    .map((listener) => ({
      ...listener,
      routes: [...listener.routes].sort((a, b) => compare(routeOrder(a), routeOrder(b))),
    }))
    .sort(
      (a, b) => compare(a.transport, b.transport) || a.listenPort - b.listenPort || compare(a.listenAddr, b.listenAddr),
    );
}
