/**
 * The listeners of a node's last heartbeat in short: how the agent says that each is. The port table, the dashboard, nodes,
 * chains and deployments compare them with the intended ones. Pure. Implements `docs/contract/rest.md#nodes`, `listeners`.
 */
import { tellsOfApplied } from '../domain/agents/node-agent-facts.js';
import type { NodeAgentFacts } from '../domain/agents/node-agent-facts.js';
import { listenerKey } from '../domain/port-table/port-table.js';
import type { RuntimeListener as WireListener } from '../gen/svc/control/v1/heartbeat.js';

/** A route with a state of its own, such as `target_unreachable`. */
interface RouteState {
  readonly matchValue: string;
  readonly state: string;
}

/** By listener, as `listenerKey` names it: agents may write an address in another notation. */
export interface ListenersInShort {
  /** The agent's word for each; `running` where one of several with the same address runs. */
  readonly states: ReadonlyMap<string, string>;
  /** Of the few listeners that have such a route. */
  readonly routes: ReadonlyMap<string, readonly RouteState[]>;
}

export interface ListenerStates extends ListenersInShort {
  /** RFC 3339. */
  readonly reportedAt: string;
  /** The generation that the process ran when it reported; null when it had not told. */
  readonly runs: number | null;
}

const noRoutes: ListenersInShort['routes'] = new Map();

const keyOf = ({ transport, listenAddr, listenPort }: WireListener): string =>
  listenerKey({ transport, listenAddr, listenPort });

export function inShort(listeners: readonly WireListener[]): ListenersInShort {
  const states = new Map<string, string>();
  for (const listener of listeners) {
    const key = keyOf(listener);
    if (states.get(key) === 'running') continue;
    // Nearly all run, and share the word.
    states.set(key, listener.state === 'running' ? 'running' : listener.state);
  }
  return { states, routes: ownRoutesOf(listeners) };
}

function ownRoutesOf(listeners: readonly WireListener[]): ListenersInShort['routes'] {
  let routes: Map<string, readonly RouteState[]> | undefined;
  for (const listener of listeners) {
    const own = listener.routes.flatMap(({ matchValue, state }) => (state === '' ? [] : [{ matchValue, state }]));
    if (own.length > 0) (routes ??= new Map()).set(keyOf(listener), own);
  }
  return routes ?? noRoutes;
}

/** Whether a report tells of what the node has applied: otherwise it says nothing about the listeners of now. */
export function isCurrent({ runs }: Pick<ListenerStates, 'runs'>, facts: Pick<NodeAgentFacts, 'applied'>): boolean {
  return tellsOfApplied(runs, facts);
}

/** The state of a listener that its node's last report does not have. */
export const missing = 'missing';

/**
 * The state of a listener that is deployed, as answers show it: `missing` when the report has others only; null before a
 * report, and while it is older than what the node has applied.
 */
export function stateNow(
  report: ListenerStates | undefined,
  facts: Pick<NodeAgentFacts, 'applied'>,
  key: string,
): string | null {
  return report !== undefined && isCurrent(report, facts) ? (report.states.get(key) ?? missing) : null;
}
