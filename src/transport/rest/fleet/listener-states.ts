/**
 * An agent's last report of its listeners beside the intended ones: how many run, and which do not. The port table, the
 * dashboard, nodes, chains and deployments compare the two here. Implements `docs/contract/rest.md#nodes`, `listeners`.
 */
import { z } from 'zod';
import type { NodeAgentFacts } from '../../../domain/agents/node-agent-facts.js';
import { tellsOfApplied } from '../../../domain/agents/node-agent-facts.js';
import { byListener, listenerKey, listenerOfKey } from '../../../domain/port-table/port-table.js';
import { limits } from '../../../kernel/limits.js';
import type { ReportedListeners, RuntimeListener } from '../../../reports/port.js';
import type { RestDeps } from '../deps.js';
import { slicesOf } from '../answers/streamed-json.js';
import { documented } from '../openapi/openapi-text.js';

/** A route with a state of its own, such as `target_unreachable`. */
interface RouteState {
  readonly matchValue: string;
  readonly state: string;
}

/** The listeners of a node's last heartbeat, as `listenerKey` names them, each running or not. */
export interface ListenerStates {
  /** RFC 3339. */
  readonly reportedAt: string;
  /** False for a report that is older than what the node has applied: it says nothing about the listeners of now. */
  readonly current: boolean;
  readonly running: ReadonlySet<string>;
  /** With the agent's word for each. */
  readonly notRunning: ReadonlyMap<string, string>;
  /** Of the few listeners that have such a route. */
  readonly routes: ReadonlyMap<string, readonly RouteState[]>;
}

const noRoutes: ListenerStates['routes'] = new Map();

/** @param facts of the node's agent; undefined when the read models do not know the node yet */
export function statesOf(
  { reported_at: reportedAt, runs_generation, listeners }: ReportedListeners,
  facts: Pick<NodeAgentFacts, 'applied'> | undefined,
): ListenerStates {
  const running = new Set<string>();
  const routes = new Map<string, readonly RouteState[]>();
  const notRunning = new Map<string, string>();
  for (const listener of listeners) {
    if (listener.state === 'running') running.add(reportedKey(listener));
    else notRunning.set(reportedKey(listener), listener.state);
    const own = listener.routes.flatMap(({ match_value: matchValue, state }) =>
      state === null ? [] : [{ matchValue, state }],
    );
    if (own.length > 0) routes.set(reportedKey(listener), own);
  }
  for (const key of running) notRunning.delete(key);
  const current = tellsOfApplied(runs_generation, facts);
  return { reportedAt, current, running, notRunning, routes: routes.size === 0 ? noRoutes : routes };
}

/** As `listenerKey` names it: agents may write an address in another notation. */
export function reportedKey({ transport, listen_addr, listen_port }: RuntimeListener): string {
  return listenerKey({ transport, listenAddr: listen_addr, listenPort: listen_port });
}

/** The agent's word for a listener; undefined if it did not report it, or nothing at all. */
export function stateOf(states: ListenerStates | undefined, key: string): string | undefined {
  return states?.running.has(key) === true ? 'running' : states?.notRunning.get(key);
}

/**
 * The state of a listener that is deployed, as answers show it: `missing` when the report has others only; null before a
 * report, and while it is older than what the node has applied.
 */
export function stateNow(states: ListenerStates | undefined, key: string): string | null {
  return states?.current === true ? (stateOf(states, key) ?? missing) : null;
}

/** The state of a listener that its node's last report does not have. */
export const missing = 'missing';

/** The states of the nodes that have reported, read in slices. @throws ServiceError `unavailable` */
export async function readStates(
  { agentFacts, telemetry }: Pick<RestDeps, 'agentFacts' | 'telemetry'>,
  nodeIds: readonly string[],
): Promise<ReadonlyMap<string, ListenerStates>> {
  const states = new Map<string, ListenerStates>();
  for await (const slice of slicesOf(nodeIds)) {
    for (const [id, report] of await telemetry.listeners(slice)) states.set(id, statesOf(report, agentFacts.of(id)));
  }
  return states;
}

export const shownListeners = z
  .object({
    intended: documented(z.int(), 'Listeners of what is deployed', 2),
    running: documented(z.int(), 'Those that were last reported as `running`', 1),
    failed: documented(
      z.array(
        z
          .object({
            transport: documented(z.string(), 'QUIC listens on udp', 'tcp'),
            listen_addr: documented(z.string(), 'IP address', '0.0.0.0'),
            listen_port: documented(z.int(), 'Port', 443),
            state: documented(z.string(), `The agent's word, or \`${missing}\` if it did not report it`, 'failed'),
          })
          .meta({ id: 'FailedListener', description: 'A listener that is intended and does not run' }),
      ),
      `Those in another state, by transport, port and address, at most ${limits.rest.failedListeners}`,
    ),
  })
  .nullable()
  .meta({
    id: 'ShownListeners',
    description:
      'What is deployed beside what agents reported last; null before a report, and while it is older than the last apply',
  });
export type ShownListeners = z.output<typeof shownListeners>;

interface Intended {
  /** As `listenerKey` names them. */
  readonly keys: Iterable<string>;
  /** The last report of their node; undefined before one. */
  readonly states: ListenerStates | undefined;
}

/**
 * The listeners that are intended on nodes, beside their reports; null when no report counts. Where only some count, the
 * listeners of the other nodes are intended, and neither running nor failed.
 */
export function listenersShown(nodes: readonly Intended[]): ShownListeners {
  if (nodes.every(({ states }) => states?.current !== true)) return null;
  let [intended, running] = [0, 0];
  const failed: (ReturnType<typeof listenerOfKey> & { readonly state: string })[] = [];
  for (const { keys, states } of nodes) {
    for (const key of keys) {
      intended += 1;
      const state = stateNow(states, key);
      if (state === 'running') running += 1;
      else if (state !== null) failed.push({ ...listenerOfKey(key), state });
    }
  }
  const shown = failed.sort(byListener).slice(0, limits.rest.failedListeners);
  return {
    intended,
    running,
    failed: shown.map(({ transport, listenAddr, listenPort, state }) => ({
      transport,
      listen_addr: listenAddr,
      listen_port: listenPort,
      state,
    })),
  };
}
