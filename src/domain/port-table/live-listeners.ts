/**
 * The listeners that a node has once it has applied its newest snapshot: those of deployed chains, enabled routes and
 * L3 networks. Definitions that are not deployed are in `intended-listeners.ts`. Implements
 * `docs/contract/rest.md#dashboard`, intended.
 */
import type { Fleet } from '../fleet/fleet.js';
import { contributorsOf } from '../compile/compile-node.js';
import { listenerKey } from './intended-listeners.js';

/** Each as `listenerKey` names it, once however many resources share it; none for an unknown node. */
export function liveListeners(fleet: Fleet, nodeId: string): ReadonlySet<string> {
  const keys = new Set<string>();
  for (const { compiled, state } of contributorsOf(fleet, nodeId)) {
    for (const listener of compiled.liveOn(state, nodeId)) keys.add(listenerKey(listener));
  }
  return keys;
}
