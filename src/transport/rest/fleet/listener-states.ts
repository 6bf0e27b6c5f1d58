/**
 * Compares the listeners of an agent's last report with the intended ones, for nodes, chains and deployments: how many run, and
 * which do not. Implements `docs/contract/rest.md#nodes`, `listeners`.
 */
import { z } from 'zod';
import { tellsOfApplied } from '../../../domain/agents/node-agent-facts.js';
import { byListener, listenerOfKey } from '../../../domain/port-table/port-table.js';
import { limits } from '../../../kernel/limits.js';
import { missing, stateNow } from '../../../reports/listener-states.js';
import type { RestDeps } from '../deps.js';
import { component, documented } from '../schemas/documented.js';

export const shownListeners = z
  .object({
    intended: documented(z.int(), 'Number of deployed listeners', 2),
    running: documented(z.int(), 'Those last reported as `running`', 1),
    failed: documented(
      z.array(
        component('FailedListener', 'A listener that is intended and does not run', {
          transport: documented(z.string(), 'QUIC listens on udp', 'tcp'),
          listen_addr: documented(z.string(), 'IP address', '0.0.0.0'),
          listen_port: documented(z.int(), 'Port', 443),
          state: documented(
            z.string(),
            `State in the agent's report, or \`${missing}\` if the report lacks it`,
            'failed',
          ),
        }),
      ),
      `Those in another state, by transport, port and address, at most ${limits.rest.failedListeners}`,
    ),
  })
  .nullable()
  .meta({
    id: 'ShownListeners',
    description: 'Deployed listeners compared with the last reports; null without a report since the last apply',
  });
export type ShownListeners = z.output<typeof shownListeners>;

interface Intended {
  readonly nodeId: string;
  /** Made by `listenerKey`. */
  readonly keys: Iterable<string>;
}

/**
 * The intended listeners of nodes compared with their reports; null when no report counts. Listeners of nodes whose report does
 * not count are intended, but neither running nor failed.
 */
export function listenersShown(
  { reports, agentFacts }: Pick<RestDeps, 'reports' | 'agentFacts'>,
  nodes: readonly Intended[],
): ShownListeners {
  let counts = false;
  let [intended, running] = [0, 0];
  const failed: (ReturnType<typeof listenerOfKey> & { readonly state: string })[] = [];
  for (const { nodeId, keys } of nodes) {
    const [states, facts] = [reports.listenerStates(nodeId), agentFacts.of(nodeId)];
    counts ||= states !== undefined && tellsOfApplied(states.runs, facts);
    for (const key of keys) {
      intended += 1;
      const state = stateNow(states, facts, key);
      if (state === 'running') running += 1;
      else if (state !== null) failed.push({ ...listenerOfKey(key), state });
    }
  }
  if (!counts) return null;
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
