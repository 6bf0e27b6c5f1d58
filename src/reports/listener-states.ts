/**
 * The reported state of each listener in a node's last heartbeat, for comparison with the intended listeners. Pure. Implements `docs/contract/rest.md#nodes`, `listeners`.
 */
import { tellsOfApplied, type NodeAgentFacts } from '../domain/agents/node-agent-facts.js';
import { listenerKey } from '../domain/port-table/port-table.js';
import type { RuntimeListener as WireListener } from '../gen/svc/control/v1/heartbeat.js';

/** A route with its own state, such as `target_unreachable`. */
interface RouteState {
  readonly matchValue: string;
  readonly state: string;
}

/** By `listenerKey`, because agents may write an address in another notation. */
export interface ListenerSummary {
  /** As reported; `running` if one of several with the same address runs. */
  readonly states: ReadonlyMap<string, string>;
  /** Only for the few listeners that have such a route. */
  readonly routes: ReadonlyMap<string, readonly RouteState[]>;
}

export interface ListenerStates extends ListenerSummary {
  /** RFC 3339. */
  readonly reportedAt: string;
  /** See `ReportingProcess`. */
  readonly runs: number | null;
}

const noRoutes: ListenerSummary['routes'] = new Map();

const keyOf = ({ transport, listenAddr, listenPort }: WireListener): string =>
  listenerKey({ transport, listenAddr, listenPort });

export function summarizeListeners(listeners: readonly WireListener[]): ListenerSummary {
  const states = new Map<string, string>();
  for (const listener of listeners) {
    const key = keyOf(listener);
    if (states.get(key) === 'running') continue;
    // Nearly all run, and share this string.
    states.set(key, listener.state === 'running' ? 'running' : listener.state);
  }
  return { states, routes: ownRoutesOf(listeners) };
}

function ownRoutesOf(listeners: readonly WireListener[]): ListenerSummary['routes'] {
  let routes: Map<string, readonly RouteState[]> | undefined;
  for (const listener of listeners) {
    const own = listener.routes.flatMap(({ matchValue, state }) => (state === '' ? [] : [{ matchValue, state }]));
    if (own.length > 0) (routes ??= new Map()).set(keyOf(listener), own);
  }
  return routes ?? noRoutes;
}

/** The state of a deployed listener that its node does not report. */
export const missing = 'missing';

/** The state of a deployed listener; null without a report, or if the report is older than the applied configuration. */
export function stateNow(
  report: ListenerStates | undefined,
  facts: Pick<NodeAgentFacts, 'applied'>,
  key: string,
): string | null {
  return report !== undefined && tellsOfApplied(report.runs, facts) ? (report.states.get(key) ?? missing) : null;
}
