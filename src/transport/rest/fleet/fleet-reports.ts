/**
 * The last reports of all nodes' agents, in short. Reports of some nodes are read on demand. The reports of a whole
 * fleet are many documents, so they are read in slices and reused for a while: agents report only every few seconds.
 * Implements `docs/contract/rest.md#dashboard` and `docs/contract/domain.md#health-of-a-chain`.
 */
import type { NodeAgentFacts } from '../../../domain/agents/node-agent-facts.js';
import { tolerableLoss } from '../../../domain/chain/health.js';
import type { Clock } from '../../../kernel/clock.js';
import { timestamp } from '../../../kernel/clock.js';
import { createShared } from '../../../kernel/shared.js';
import type { Begun } from '../../../kernel/shared.js';
import type { ReportedLinks, ReportedListeners, ReportedMetrics } from '../../../reports/port.js';
import type { RestDeps } from '../deps.js';
import type { NodeSamples } from './link-measurements.js';
import { byResource } from './link-measurements.js';
import type { ListenerStates } from './listener-states.js';
import { statesOf } from './listener-states.js';
import { slicesOf } from '../answers/streamed-json.js';
import { tuning } from '../tuning.js';

export interface Traffic {
  readonly bytes_in: number;
  readonly bytes_out: number;
  readonly active_sessions: number;
  readonly total_sessions: number;
  readonly error_sessions: number;
}

export const noTraffic: Traffic = {
  bytes_in: 0,
  bytes_out: 0,
  active_sessions: 0,
  total_sessions: 0,
  error_sessions: 0,
};

/** Counters stay what JSON and JavaScript keep exactly. */
const plus = (a: number, b = 0): number => Math.min(a + b, Number.MAX_SAFE_INTEGER);

export function addTraffic(a: Traffic, b: Partial<Traffic>): Traffic {
  return {
    bytes_in: plus(a.bytes_in, b.bytes_in),
    bytes_out: plus(a.bytes_out, b.bytes_out),
    active_sessions: plus(a.active_sessions, b.active_sessions),
    total_sessions: plus(a.total_sessions, b.total_sessions),
    error_sessions: plus(a.error_sessions, b.error_sessions),
  };
}

/** The report of one node. */
export interface NodeReport {
  readonly agent: Pick<NodeAgentFacts, 'connected_once' | 'applied' | 'rejected' | 'session'> | undefined;
  /** Undefined before the first report. */
  readonly listeners: ListenerStates | undefined;
  readonly traffic: Traffic;
  /** Its measurements of links that lose too much; undefined without any, or when links were not asked for. */
  readonly lossy: NodeSamples | undefined;
  /** Its newest metrics, of the upstreams that they name; undefined before any, or when links were not asked for. */
  readonly upstreams: ReportedUpstreams | undefined;
}

export interface ReportedUpstreams {
  /** RFC 3339. */
  readonly at: string;
  /** As in `ReportingProcess`. */
  readonly runs: number | null;
  /** Whether each is healthy, by cluster: that of a registered upstream is its id. */
  readonly healthy: ReadonlyMap<string, boolean>;
}

export interface FleetReports {
  /** When reading them began, RFC 3339. */
  readonly at: string;
  /** Nodes with a live session, on any instance. */
  readonly online: ReadonlySet<string>;
  readonly nodes: ReadonlyMap<string, NodeReport>;
}

interface ReportOptions {
  /** Whether links and the health of upstreams are read as well. */
  readonly links: boolean;
}

/**
 * @param options.reuseMs for how long reports are given again, at least
 * @returns a function that gives the reports of all nodes; it throws ServiceError `unavailable`
 */
export function createFleetReports(
  deps: RestDeps,
  options: ReportOptions & { readonly reuseMs: number },
): () => Promise<FleetReports> {
  const read = async (): Promise<FleetReports> => {
    const at = timestamp(deps.clock.now());
    const online = new Set((await deps.telemetry.online()).keys());
    return { at, online, nodes: await readReports(deps, [...deps.fleet.nodeIds()], options) };
  };
  return createShared(read, {
    stamp: () => 0,
    isFresh: (begun) => servesAgain(deps.clock, begun, options.reuseMs),
    now: deps.clock.monotonic,
  });
}

/** Whether what was made from reports may be given again: for at least `reuseMs`, and longer where it took long. */
export function servesAgain(clock: Pick<Clock, 'monotonic'>, { begunAt, tookMs }: Begun, reuseMs: number): boolean {
  const { costFactor, maxMs } = tuning.fleetReports;
  if (tookMs === undefined) return true;
  return clock.monotonic() - begunAt < Math.min(maxMs, Math.max(reuseMs, tookMs * costFactor));
}

/**
 * The reports of these nodes, in slices.
 * @param signal ends the reading early, with the reports so far
 * @throws ServiceError `unavailable`
 */
export async function readReports(
  { agentFacts, telemetry }: Pick<RestDeps, 'agentFacts' | 'telemetry'>,
  nodeIds: readonly string[],
  { links }: ReportOptions,
  signal?: AbortSignal,
): Promise<ReadonlyMap<string, NodeReport>> {
  const nodes = new Map<string, NodeReport>();
  for await (const slice of slicesOf(nodeIds)) {
    if (signal?.aborted === true) break;
    const [listeners, measured, metrics] = await Promise.all([
      telemetry.listeners(slice),
      links ? telemetry.links(slice) : undefined,
      links ? telemetry.reportedMetrics(slice) : undefined,
    ]);
    for (const id of slice) {
      nodes.set(id, {
        ...shortOf(agentFacts.of(id), listeners.get(id)),
        lossy: lossyOf(measured?.get(id)),
        upstreams: upstreamsOf(metrics?.get(id)),
      });
    }
  }
  return nodes;
}

function shortOf(
  agent: NodeAgentFacts | undefined,
  listeners: ReportedListeners | undefined,
): Omit<NodeReport, 'lossy' | 'upstreams'> {
  let traffic = addTraffic(noTraffic, listeners?.gone ?? {});
  for (const listener of listeners?.listeners ?? []) traffic = addTraffic(traffic, listener);
  return {
    agent: agent && agentInShort(agent),
    listeners: listeners && statesOf(listeners, agent),
    traffic,
  };
}

/** Only the parts that are needed: a reject may have many errors. */
function agentInShort({ connected_once, applied, rejected, session }: NodeAgentFacts): NodeReport['agent'] {
  return { connected_once, applied, rejected, ...(session === undefined ? {} : { session }) };
}

function lossyOf(reported: ReportedLinks | undefined): NodeSamples | undefined {
  const links = (reported?.links ?? []).filter(
    ({ resource_type, loss_ratio }) =>
      resource_type === 'l4_chain' && loss_ratio !== null && loss_ratio > tolerableLoss,
  );
  return reported === undefined || links.length === 0 ? undefined : byResource({ ...reported, links });
}

function upstreamsOf(reported: ReportedMetrics | undefined): ReportedUpstreams | undefined {
  if (reported === undefined) return undefined;
  const { reported_at: at, runs_generation: runs, report } = reported;
  const named = report.gateway?.upstreams ?? [];
  return { at, runs, healthy: new Map(named.map(({ cluster, healthy }) => [cluster, healthy])) };
}
