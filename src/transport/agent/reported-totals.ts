/**
 * The traffic that the agents of this instance have reported, added up for `/metrics`. No node is named, so a fleet of
 * any size takes a few lines. An agent's counters start with its process, so only their rise from one report of a
 * session to the next is added. Implements `docs/contract/agent-protocol.md#heartbeats-commands-metrics`.
 */
import { Counter } from 'prom-client';
import type { MetricsReport } from '../../gen/svc/control/v1/metrics.js';
import type { MetricSource } from '../../instance/metrics.js';
import { wholeNumber } from '../../telemetry/reported.js';

export interface ReportedTotals {
  /** A session has sent a report. */
  note(sessionId: string, report: MetricsReport): void;
  /** A session has ended: its connections and upstreams no longer count. */
  ended(sessionId: string): void;
  metrics(): readonly MetricSource[];
}

/** Where a counter of the report is added. `of` gives undefined where the agent did not report that part. */
interface Total {
  readonly counter: Counter;
  readonly labels: Readonly<Record<string, string>>;
  of(report: MetricsReport): bigint | undefined;
}

/** The last report of a session. */
interface LastReport {
  /** In the order of the totals. */
  readonly counters: readonly (bigint | undefined)[];
  readonly active: number;
  readonly healthy: number;
  readonly unhealthy: number;
}

const counterOf = (name: string, what: string, labelNames: readonly string[] = []): Counter =>
  new Counter({
    name,
    help: `${what}, as the agents of this instance reported`,
    labelNames: [...labelNames],
    registers: [],
  });

export function createReportedTotals(): ReportedTotals {
  /** One entry per session that has reported. */
  const last = new Map<string, LastReport>();
  const reports = new Counter({
    name: 'svc_agent_metrics_reports_total',
    help: 'Metrics reports received',
    registers: [],
  });
  const connections = counterOf('svc_node_connections_total', 'Connections of nodes by what became of them', ['event']);
  const bytes = counterOf('svc_node_bytes_total', 'Bytes that nodes carried', ['direction']);
  const requests = counterOf('svc_node_requests_total', 'HTTP requests that nodes served');
  const errors = counterOf('svc_node_request_errors_total', 'HTTP requests that nodes could not serve');
  const restarts = counterOf('svc_node_worker_restarts_total', 'Restarts of gateway workers on nodes');
  const totals: readonly Total[] = [
    { counter: connections, labels: { event: 'accepted' }, of: (report) => report.connections?.accepted },
    { counter: connections, labels: { event: 'closed' }, of: (report) => report.connections?.closed },
    { counter: connections, labels: { event: 'failed' }, of: (report) => report.connections?.failed },
    {
      counter: connections,
      labels: { event: 'handshake_failed' },
      of: (report) => report.connections?.handshakeFailures,
    },
    { counter: bytes, labels: { direction: 'in' }, of: (report) => report.bandwidth?.bytesIn },
    { counter: bytes, labels: { direction: 'out' }, of: (report) => report.bandwidth?.bytesOut },
    { counter: requests, labels: {}, of: (report) => report.gateway?.requests },
    { counter: errors, labels: {}, of: (report) => report.gateway?.errors },
    { counter: restarts, labels: {}, of: (report) => report.gateway?.workerRestarts },
  ];
  // A counter with labels shows a value only once it has been counted.
  for (const { counter, labels } of totals) counter.inc(labels, 0);
  const sumOf = (figure: 'active' | 'healthy' | 'unhealthy'): number => {
    let sum = 0;
    for (const report of last.values()) sum += report[figure];
    return sum;
  };

  return {
    note(sessionId, report) {
      reports.inc();
      const upstreams = report.gateway?.upstreams ?? [];
      const healthy = upstreams.filter((upstream) => upstream.healthy).length;
      const counters = totals.map(({ of }) => of(report));
      const before = last.get(sessionId)?.counters ?? [];
      for (const [place, { counter, labels }] of totals.entries()) {
        counter.inc(labels, riseOf(before[place], counters[place]));
      }
      const active = wholeNumber(report.connections?.active ?? 0n);
      last.set(sessionId, { counters, active, healthy, unhealthy: upstreams.length - healthy });
    },
    ended: (sessionId) => void last.delete(sessionId),
    metrics: () => [
      reports,
      {
        type: 'gauge',
        name: 'svc_node_connections',
        help: 'Connections that nodes carry now, as the agents of this instance reported last',
        read: () => sumOf('active'),
      },
      connections,
      bytes,
      requests,
      errors,
      restarts,
      {
        type: 'gauge',
        name: 'svc_node_upstreams',
        help: 'Upstreams of nodes by health, each counted on each node, as the agents of this instance reported last',
        label: 'health',
        read: () => new Map([['healthy', sumOf('healthy')] as const, ['unhealthy', sumOf('unhealthy')] as const]),
      },
    ],
  };
}

/** A counter that has fallen has begun again. */
function riseOf(before: bigint | undefined, now: bigint | undefined): number {
  if (before === undefined || now === undefined) return 0;
  return wholeNumber(now < before ? now : now - before);
}
