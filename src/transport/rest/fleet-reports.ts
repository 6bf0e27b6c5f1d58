/**
 * What the agents of all nodes have told, in short, for the dashboard: read in slices, because a large fleet's reports are
 * many documents, and given again for a while, because agents report every few seconds only.
 * Implements `docs/contract/rest.md#dashboard`.
 */
import { listenerKey } from '../../domain/port-table/intended-listeners.js';
import { canonicalIp } from '../../kernel/addresses.js';
import { yieldToEventLoop } from '../../kernel/background.js';
import { timestamp } from '../../kernel/clock.js';
import { createShared } from '../../kernel/shared.js';
import type { NodeRecord } from '../../projections/port.js';
import type { ReportedListeners, RuntimeListener } from '../../telemetry/port.js';
import type { RestDeps } from './deps.js';
import { tuning } from './tuning.js';

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

export function addTraffic(a: Traffic, b: Partial<Traffic>): Traffic {
  return {
    bytes_in: a.bytes_in + (b.bytes_in ?? 0),
    bytes_out: a.bytes_out + (b.bytes_out ?? 0),
    active_sessions: a.active_sessions + (b.active_sessions ?? 0),
    total_sessions: a.total_sessions + (b.total_sessions ?? 0),
    error_sessions: a.error_sessions + (b.error_sessions ?? 0),
  };
}

/** Of one node. */
export interface NodeReport {
  readonly agent: Pick<NodeRecord['agent'], 'connected_once' | 'applied' | 'rejected'> | undefined;
  /** Reported listeners, as `listenerKey` names them; those that run, and all others, each in one of the two. */
  readonly running: ReadonlySet<string>;
  readonly notRunning: ReadonlySet<string>;
  readonly traffic: Traffic;
}

export interface FleetReports {
  /** When reading them began, RFC 3339. */
  readonly at: string;
  /** Nodes with a live session, on any instance. */
  readonly online: ReadonlySet<string>;
  readonly nodes: ReadonlyMap<string, NodeReport>;
}

/** @returns a function that gives the reports of all nodes; it throws ServiceError `unavailable` */
export function createFleetReports(deps: RestDeps): () => Promise<FleetReports> {
  const { reuseMs, timesTheCost, maxMs } = tuning.dashboard;
  const { clock } = deps;
  return createShared(() => readReports(deps), {
    stamp: () => 0,
    isFresh({ begunAt, tookMs }) {
      if (tookMs === undefined) return true;
      return clock.monotonic() - begunAt < Math.min(maxMs, Math.max(reuseMs, tookMs * timesTheCost));
    },
    now: clock.monotonic,
  });
}

async function readReports({ delivery, projections, telemetry, clock }: RestDeps): Promise<FleetReports> {
  const at = timestamp(clock.now());
  const online = new Set((await telemetry.online()).keys());
  const nodes = new Map<string, NodeReport>();
  const ids = [...delivery.nodeIds()];
  for (let from = 0; from < ids.length; from += tuning.nodesPerSlice) {
    const slice = ids.slice(from, from + tuning.nodesPerSlice);
    const [records, reports] = await Promise.all([projections.nodes.getMany(slice), telemetry.listeners(slice)]);
    const agents = new Map(records.map(({ node, agent }) => [node.id, agent]));
    for (const id of slice) nodes.set(id, shortOf(agents.get(id), reports.get(id)));
    await yieldToEventLoop();
  }
  return { at, online, nodes };
}

function shortOf(agent: NodeRecord['agent'] | undefined, report: ReportedListeners | undefined): NodeReport {
  const [running, notRunning] = [new Set<string>(), new Set<string>()];
  let traffic = noTraffic;
  for (const listener of report?.listeners ?? []) {
    (listener.state === 'running' ? running : notRunning).add(keyOf(listener));
    traffic = addTraffic(traffic, listener);
  }
  for (const key of running) notRunning.delete(key);
  // No more than is counted: the errors of a reject may be many.
  const facts = agent && { connected_once: agent.connected_once, applied: agent.applied, rejected: agent.rejected };
  return { agent: facts, running, notRunning, traffic };
}

/** Agents may write an address in another notation. */
function keyOf({ transport, listen_addr, listen_port }: RuntimeListener): string {
  return listenerKey({ transport, listenAddr: canonicalIp(listen_addr) ?? listen_addr, listenPort: listen_port });
}
