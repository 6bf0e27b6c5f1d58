/**
 * The listeners of one node: the ones that current definitions intend, with merged routes and with policies, and the ones
 * that the node runs after applying its newest snapshot. REST adds what agents report. Implements
 * `docs/contract/domain.md#l4-chain`, listener intent, and `docs/contract/rest.md#port-management`.
 */
import { plainIp } from '../../kernel/addresses.js';
import type { Fleet } from '../fleet/fleet.js';
import type { IntendedListener, IntendedRoute, ListenerKey } from '../listeners/intent.js';
import { policiesOf, priorityLabels, type PriorityLabel } from '../listener-policy/policy.js';
import { contributorsOf } from '../compile/compile-node.js';

const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

/** A route with the resource that intends it. */
export interface PortRoute extends IntendedRoute {
  readonly resourceType: string;
  readonly resourceId: string;
  readonly resourceName: string;
}

const routeOrder = ({ source, matchKind, matchValue, resourceId }: PortRoute): string =>
  `${source}\u0000${matchKind}\u0000${matchValue}\u0000${resourceId}`;

/** By transport, port and address. */
export function byListener(a: ListenerKey, b: ListenerKey): number {
  return compare(a.transport, b.transport) || a.listenPort - b.listenPort || compare(a.listenAddr, b.listenAddr);
}

/**
 * A listener's key as one string. Agents may report any transport. Made by `join`, because keys of a whole fleet are kept,
 * and a template would keep its parts in memory too.
 */
export function listenerKey({
  transport,
  listenAddr,
  listenPort,
}: Omit<ListenerKey, 'transport'> & { readonly transport: string }): string {
  return [transport, listenPort, plainIp(listenAddr)].join('/');
}

/** The listener of a key. */
export function listenerOfKey(key: string): ListenerKey {
  const [transport, port, listenAddr = ''] = key.split('/');
  return { transport: transport === 'udp' ? 'udp' : 'tcp', listenAddr, listenPort: Number(port) };
}

/** Sorted by transport, port and address; routes by source, match kind and value. @internal exported for tests */
export function intendedListeners(fleet: Fleet, nodeId: string): readonly IntendedListener<PortRoute>[] {
  const listeners = new Map<string, { readonly listener: IntendedListener; readonly routes: PortRoute[] }>();
  for (const owner of fleet.referrersOf('node', nodeId)) {
    const resolved = fleet.resolve(owner);
    if (resolved === undefined) continue;
    const { type, id, state, declaration } = resolved;
    for (const listener of declaration.compiled?.intendedOn(fleet, state, nodeId) ?? []) {
      const resource = { resourceType: type, resourceId: id, resourceName: state.name };
      const routes = listener.routes.map((route) => ({ ...route, ...resource }));
      const known = listeners.get(listenerKey(listener));
      if (known === undefined) listeners.set(listenerKey(listener), { listener, routes });
      else known.routes.push(...routes);
    }
  }
  return [...listeners.values()]
    .map(({ listener, routes }) => {
      const keyed = routes.map((route) => ({ route, order: routeOrder(route) }));
      return { ...listener, routes: keyed.sort((a, b) => compare(a.order, b.order)).map(({ route }) => route) };
    })
    .sort(byListener);
}

export interface PortRow extends IntendedListener<PortRoute> {
  readonly priorityOrder: readonly PriorityLabel[];
  /** False for the default order. */
  readonly policySaved: boolean;
}

/** The rows of a node, sorted by transport, port and address. */
export function portRows(fleet: Fleet, nodeId: string): readonly PortRow[] {
  const rows = new Map(
    intendedListeners(fleet, nodeId).map((listener): [string, PortRow] => [
      listenerKey(listener),
      { ...listener, priorityOrder: priorityLabels, policySaved: false },
    ]),
  );
  for (const { transport, listen_addr, listen_port, priority_order } of policiesOf(fleet, nodeId)) {
    const key = { transport, listenAddr: listen_addr, listenPort: listen_port };
    const row = rows.get(listenerKey(key)) ?? { nodeId, ...key, routes: [] };
    rows.set(listenerKey(key), { ...row, priorityOrder: priority_order, policySaved: true });
  }
  return [...rows.values()].sort(byListener);
}

/** The keys of the listeners that a node runs after applying its newest snapshot. */
export function liveListeners(fleet: Fleet, nodeId: string): ReadonlySet<string> {
  const keys = new Set<string>();
  for (const { compiled, state } of contributorsOf(fleet, nodeId)) {
    for (const listener of compiled.liveOn(state, nodeId)) keys.add(listenerKey(listener));
  }
  return keys;
}
