/**
 * An agent's last report of its listeners beside the intended ones: how many run, and which do not. The port table, the
 * dashboard, nodes, chains and deployments compare the two here. Implements `docs/contract/rest.md#nodes`, `listeners`.
 */
import { z } from 'zod';
import { byListener, listenerKey, listenerOfKey } from '../../../domain/port-table/port-table.js';
import { limits } from '../../../kernel/limits.js';
import type { ReportedListeners, RuntimeListener } from '../../../telemetry/port.js';
import type { RestDeps } from '../deps.js';
import { slicesOf } from '../answers/streamed-json.js';
import { documented } from '../openapi/openapi-text.js';

/** The listeners of a node's last heartbeat, as `listenerKey` names them, each in one of the two. */
export interface ListenerStates {
  /** RFC 3339. */
  readonly reportedAt: string;
  readonly running: ReadonlySet<string>;
  /** With the agent's word for each. */
  readonly notRunning: ReadonlyMap<string, string>;
}

export function statesOf({ reported_at: reportedAt, listeners }: ReportedListeners): ListenerStates {
  const running = new Set<string>();
  const notRunning = new Map<string, string>();
  for (const listener of listeners) {
    if (listener.state === 'running') running.add(reportedKey(listener));
    else notRunning.set(reportedKey(listener), listener.state);
  }
  for (const key of running) notRunning.delete(key);
  return { reportedAt, running, notRunning };
}

/** As `listenerKey` names it: agents may write an address in another notation. */
export function reportedKey({ transport, listen_addr, listen_port }: RuntimeListener): string {
  return listenerKey({ transport, listenAddr: listen_addr, listenPort: listen_port });
}

/** The agent's word for a listener; undefined if it did not report it, or nothing at all. */
export function stateOf(states: ListenerStates | undefined, key: string): string | undefined {
  return states?.running.has(key) === true ? 'running' : states?.notRunning.get(key);
}

/** How many of the listeners run. */
export function countRunning({ running }: ListenerStates, keys: Iterable<string>): number {
  let count = 0;
  for (const key of keys) if (running.has(key)) count += 1;
  return count;
}

/** The state of a listener that its node's last report does not have. */
export const missing = 'missing';

/** The states of the nodes that have reported, read in slices. @throws ServiceError `unavailable` */
export async function readStates(
  { telemetry }: Pick<RestDeps, 'telemetry'>,
  nodeIds: readonly string[],
): Promise<ReadonlyMap<string, ListenerStates>> {
  const states = new Map<string, ListenerStates>();
  for await (const slice of slicesOf(nodeIds)) {
    for (const [id, report] of await telemetry.listeners(slice)) states.set(id, statesOf(report));
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
      `The others, by transport, port and address, at most ${limits.rest.failedListeners}`,
    ),
  })
  .nullable()
  .meta({
    id: 'ShownListeners',
    description: 'What is deployed beside what agents reported last; null before a report',
  });
export type ShownListeners = z.output<typeof shownListeners>;

interface Intended {
  /** As `listenerKey` names them. */
  readonly keys: Iterable<string>;
  /** The last report of their node; undefined before one. */
  readonly states: ListenerStates | undefined;
}

/** The listeners that are intended on nodes, beside their reports; null when none of the nodes has reported. */
export function listenersShown(nodes: readonly Intended[]): ShownListeners {
  if (nodes.every(({ states }) => states === undefined)) return null;
  let intended = 0;
  const failed: (ReturnType<typeof listenerOfKey> & { readonly state: string })[] = [];
  for (const { keys, states } of nodes) {
    for (const key of keys) {
      intended += 1;
      const state = stateOf(states, key) ?? missing;
      if (state !== 'running') failed.push({ ...listenerOfKey(key), state });
    }
  }
  const running = intended - failed.length;
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
