/**
 * The listeners that the current definitions of enabled resources intend on a node; routes on one listener are merged.
 * REST's `port-runtime.ts` shows the listeners that agents report. Implements `docs/contract/domain.md#l4-chain`,
 * listener intent.
 */
import type { Fleet } from '../fleet/fleet.js';
import { resourceOfType } from '../fleet/resources.js';
import type { AnyState } from '../fleet/resources.js';
import type { IntendedListener, IntendedRoute, ListenerKey } from '../listeners/intent.js';
import { splitOwner } from '../references/references.js';

const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);
const routeOrder = ({ source, matchKind, matchValue, resourceId }: IntendedRoute): string =>
  `${source}\u0000${matchKind}\u0000${matchValue}\u0000${resourceId}`;

/** By transport, port and address. */
export function byListener(a: ListenerKey, b: ListenerKey): number {
  return compare(a.transport, b.transport) || a.listenPort - b.listenPort || compare(a.listenAddr, b.listenAddr);
}

/** A listener's key as one string. Reports of agents may name any transport. */
export function listenerKey({
  transport,
  listenAddr,
  listenPort,
}: Omit<ListenerKey, 'transport'> & { readonly transport: string }): string {
  return `${transport}/${listenPort}/${listenAddr}`;
}

/** What `listenerKey` named. */
export function listenerOfKey(key: string): ListenerKey {
  const [transport, port, listenAddr = ''] = key.split('/');
  return { transport: transport === 'udp' ? 'udp' : 'tcp', listenAddr, listenPort: Number(port) };
}

/** The listeners of one node, by transport, port and address; routes by source, match kind and value. */
export function intendedListeners(fleet: Fleet, nodeId: string): readonly IntendedListener[] {
  const listeners = new Map<string, { readonly listener: IntendedListener; readonly routes: IntendedRoute[] }>();
  for (const owner of fleet.referrersOf('node', nodeId)) {
    const { type, id } = splitOwner(owner);
    const state = fleet.get<AnyState>({ type }, id);
    if (state === undefined) continue;
    for (const listener of resourceOfType(type)?.compiled?.intendedOn(fleet, state, nodeId) ?? []) {
      const known = listeners.get(listenerKey(listener));
      if (known === undefined) listeners.set(listenerKey(listener), { listener, routes: [...listener.routes] });
      else known.routes.push(...listener.routes);
    }
  }
  return [...listeners.values()]
    .map(({ listener, routes }) => {
      const keyed = routes.map((route) => ({ route, order: routeOrder(route) }));
      return { ...listener, routes: keyed.sort((a, b) => compare(a.order, b.order)).map(({ route }) => route) };
    })
    .sort(byListener);
}
