/**
 * What the agents of this instance have reported of their traffic, added up for `/metrics`: no node is named, so a fleet
 * of any size is a few lines. Counters of agents start with their processes, so what is added is how much they rose from
 * one report of a session to the next. Implements `docs/contract/agent-protocol.md#heartbeats-commands-metrics`.
 */
import type { MetricsReport } from '../../gen/svc/control/v1/metrics.js';
import type { MetricSource } from '../../instance/metrics.js';
import { wholeNumber } from '../../telemetry/reported-tables.js';

const counterNames = [
  'accepted',
  'closed',
  'failed',
  'handshake_failed',
  'bytes_in',
  'bytes_out',
  'requests',
  'errors',
  'worker_restarts',
] as const;
type CounterName = (typeof counterNames)[number];
/** Undefined where the agent did not report the part. */
type ReportedCounters = Readonly<Record<CounterName, bigint | undefined>>;

/** The last report of a session. */
interface LastReport {
  readonly counters: ReportedCounters;
  readonly active: number;
  readonly healthy: number;
  readonly unhealthy: number;
}

export interface ReportedTotals {
  /** A session has sent a report. */
  note(sessionId: string, report: MetricsReport): void;
  /** A session has ended: its connections and upstreams count no more. */
  ended(sessionId: string): void;
  metrics(): readonly MetricSource[];
}

export function createReportedTotals(): ReportedTotals {
  /** One entry per session that has reported. */
  const last = new Map<string, LastReport>();
  const totals: Record<CounterName, number> = {
    accepted: 0,
    closed: 0,
    failed: 0,
    handshake_failed: 0,
    bytes_in: 0,
    bytes_out: 0,
    requests: 0,
    errors: 0,
    worker_restarts: 0,
  };
  let reports = 0;
  const sumOf = (figure: 'active' | 'healthy' | 'unhealthy'): number => {
    let sum = 0;
    for (const report of last.values()) sum += report[figure];
    return sum;
  };
  const picked = (names: { readonly [word: string]: CounterName }) => (): ReadonlyMap<string, number> =>
    new Map(Object.entries(names).map(([word, name]) => [word, totals[name]]));

  return {
    note(sessionId, report) {
      reports += 1;
      const now = lastReportOf(report);
      const before = last.get(sessionId);
      last.set(sessionId, now);
      if (before === undefined) return;
      for (const name of counterNames) totals[name] += riseOf(before.counters[name], now.counters[name]);
    },
    ended: (sessionId) => void last.delete(sessionId),
    metrics: () => [
      {
        type: 'counter',
        name: 'svc_agent_metrics_reports_total',
        help: 'Metrics reports received',
        read: () => reports,
      },
      {
        type: 'gauge',
        name: 'svc_node_connections',
        help: 'Connections that nodes carry now, as the agents of this instance reported last',
        read: () => sumOf('active'),
      },
      {
        type: 'counter',
        name: 'svc_node_connections_total',
        help: 'Connections of nodes by what became of them, as the agents of this instance reported',
        label: 'event',
        read: picked({
          accepted: 'accepted',
          closed: 'closed',
          failed: 'failed',
          handshake_failed: 'handshake_failed',
        }),
      },
      {
        type: 'counter',
        name: 'svc_node_bytes_total',
        help: 'Bytes that nodes carried, as the agents of this instance reported',
        label: 'direction',
        read: picked({ in: 'bytes_in', out: 'bytes_out' }),
      },
      {
        type: 'counter',
        name: 'svc_node_requests_total',
        help: 'HTTP requests that nodes served, as the agents of this instance reported',
        read: () => totals.requests,
      },
      {
        type: 'counter',
        name: 'svc_node_request_errors_total',
        help: 'HTTP requests that nodes could not serve, as the agents of this instance reported',
        read: () => totals.errors,
      },
      {
        type: 'counter',
        name: 'svc_node_worker_restarts_total',
        help: 'Restarts of gateway workers on nodes, as the agents of this instance reported',
        read: () => totals.worker_restarts,
      },
      {
        type: 'gauge',
        name: 'svc_node_upstreams',
        help: 'Upstreams of nodes by health, each counted on each node, as the agents of this instance reported last',
        label: 'health',
        read: () =>
          new Map([
            ['healthy', sumOf('healthy')],
            ['unhealthy', sumOf('unhealthy')],
          ]),
      },
    ],
  };
}

function lastReportOf({ connections, bandwidth, gateway }: MetricsReport): LastReport {
  const upstreams = gateway?.upstreams ?? [];
  const healthy = upstreams.filter((upstream) => upstream.healthy).length;
  return {
    counters: {
      accepted: connections?.accepted,
      closed: connections?.closed,
      failed: connections?.failed,
      handshake_failed: connections?.handshakeFailures,
      bytes_in: bandwidth?.bytesIn,
      bytes_out: bandwidth?.bytesOut,
      requests: gateway?.requests,
      errors: gateway?.errors,
      worker_restarts: gateway?.workerRestarts,
    },
    active: connections === undefined ? 0 : wholeNumber(connections.active),
    healthy,
    unhealthy: upstreams.length - healthy,
  };
}

/** A counter that has fallen has begun again. */
function riseOf(before: bigint | undefined, now: bigint | undefined): number {
  if (before === undefined || now === undefined) return 0;
  return wholeNumber(now < before ? now : now - before);
}
