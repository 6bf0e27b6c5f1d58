/**
 * How the fleet is, as metrics: nodes by status, intended listeners by state, upstreams by health. Read in the background,
 * because a scrape must not wait for the reports of all agents. Every instance shows the whole fleet. Implements
 * `docs/contract/rest.md#dashboard` for those who watch by alerts.
 */
import { startLoop } from '../../../kernel/background.js';
import { errorText } from '../../../kernel/errors.js';
import { slicesOf } from '../answers/streamed-json.js';
import type { RestDeps } from '../deps.js';
import { missing, stateOf, statesOf } from './listener-states.js';
import { nodeStatuses, statusOf } from './node-status.js';

type Counts = ReadonlyMap<string, number>;

export interface FleetCounts {
  /** By status. */
  readonly nodes: Counts;
  /** By the agent's word; the state of nodes that have reported. */
  readonly listeners: Counts;
  readonly upstreams: Counts;
}

export interface FleetGauges {
  /** Without any number before the first look. */
  counts(): FleetCounts;
  close(): Promise<void>;
}

type Deps = Pick<RestDeps, 'fleet' | 'projections' | 'telemetry' | 'logger'>;

/** @param everyMs how often the reports are read */
export function startFleetGauges(deps: Deps, everyMs: number): FleetGauges {
  const none: Counts = new Map();
  let counts: FleetCounts = { nodes: none, listeners: none, upstreams: none };
  const loop = startLoop(
    everyMs,
    async (signal) => {
      const fresh = await countFleet(deps, signal);
      if (!signal.aborted) counts = fresh;
    },
    (error) => deps.logger.warn({ error: errorText(error) }, 'the metrics of the fleet could not be read'),
  );
  return {
    counts: () => counts,
    close: () => loop.close(),
  };
}

async function countFleet({ fleet, projections, telemetry }: Deps, signal: AbortSignal): Promise<FleetCounts> {
  const online = await telemetry.online();
  const nodes = new Map<string, number>(nodeStatuses.map((status) => [status, 0]));
  const listeners = new Map([
    ['running', 0],
    [missing, 0],
  ]);
  const healthy = new Map<string, boolean>();
  for await (const slice of slicesOf([...fleet.nodeIds()])) {
    if (signal.aborted) break;
    const [agents, reported, metrics] = await Promise.all([
      projections.agents.getMany(slice),
      telemetry.listeners(slice),
      telemetry.reportedMetrics(slice),
    ]);
    for (const id of slice) {
      count(nodes, statusOf(online.has(id), agents.get(id)));
      const report = reported.get(id);
      const states = report && statesOf(report);
      if (states !== undefined) {
        for (const key of fleet.liveListeners(id)) count(listeners, stateOf(states, key) ?? missing);
      }
      for (const upstream of metrics.get(id)?.report.gateway?.upstreams ?? []) {
        healthy.set(upstream.cluster, upstream.healthy && healthy.get(upstream.cluster) !== false);
      }
    }
  }
  const known = [...healthy].filter(([cluster]) => fleet.upstream(cluster) !== undefined);
  const { l4_upstreams } = await fleet.resourceCounts();
  const well = known.filter(([, one]) => one).length;
  const upstreams = new Map([
    ['healthy', well],
    ['unhealthy', known.length - well],
    ['unknown', l4_upstreams.total - known.length],
  ]);
  return { nodes, listeners, upstreams };
}

function count(counts: Map<string, number>, key: string): void {
  counts.set(key, (counts.get(key) ?? 0) + 1);
}
