/**
 * The port table of one node: the listeners that are intended there, each with its policy, and the policies of
 * listeners that nothing intends. What its agent reports is added by REST. Implements
 * `docs/contract/rest.md#port-management`.
 */
import type { Fleet } from '../fleet/fleet.js';
import { policiesOf, priorityLabels } from '../listener-policy/policy.js';
import type { PriorityLabel } from '../listener-policy/policy.js';
import type { IntendedListener } from '../listeners/intent.js';
import { byListener, intendedListeners, listenerKey } from './intended-listeners.js';

export interface PortRow extends IntendedListener {
  readonly priorityOrder: readonly PriorityLabel[];
  /** False for the default order. */
  readonly policySaved: boolean;
}

/** The rows of a node, by transport, port and address; none for an unknown node. */
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
