/**
 * Traffic of all nodes since this instance started, from the growth between consecutive metrics reports, and what the last reports say of now; no node is named.
 * Implements `docs/contract/agent-protocol.md#heartbeats-commands-metrics`.
 */
import { Counter, Gauge, type Metric } from 'prom-client';
import type { MetricsFacts } from './port.js';
import { growthOf } from './process-totals.js';

/** A counter and its source in a report; `of` returns undefined if the agent did not report that part. */
interface Total {
  readonly counter: Counter;
  readonly labels: Readonly<Record<string, string>>;
  of(report: MetricsFacts): number | undefined;
}

const counterOf = (name: string, what: string, labelNames: readonly string[] = []): Counter =>
  new Counter({
    name,
    help: `${what}, as the agents of this instance reported`,
    labelNames: [...labelNames],
    registers: [],
  });

/** What is so now, from the last reports. */
function gaugesOf(last: () => Iterable<MetricsFacts>): readonly Gauge[] {
  const connections = new Gauge({
    name: 'svc_node_connections',
    help: 'Connections that nodes carry now, as the agents of this instance reported last',
    registers: [],
    collect() {
      this.set(0);
      for (const report of last()) this.inc(report.connections?.active ?? 0);
    },
  });
  const upstreams = new Gauge({
    name: 'svc_node_upstreams',
    help: 'Upstreams of nodes by health, each counted on each node, as the agents of this instance reported last',
    labelNames: ['health'],
    registers: [],
    collect() {
      for (const health of ['healthy', 'unhealthy']) this.set({ health }, 0);
      for (const { gateway } of last()) {
        for (const { healthy } of gateway?.upstreams ?? []) this.inc({ health: healthy ? 'healthy' : 'unhealthy' });
      }
    },
  });
  return [connections, upstreams];
}

/** @param last the last reports of the agents with a session here */
export function createTrafficMetrics(last: () => Iterable<MetricsFacts>) {
  const gauges = gaugesOf(last);
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
      of: (report) => report.connections?.handshake_failures,
    },
    { counter: bytes, labels: { direction: 'in' }, of: (report) => report.bandwidth?.bytes_in },
    { counter: bytes, labels: { direction: 'out' }, of: (report) => report.bandwidth?.bytes_out },
    { counter: requests, labels: {}, of: (report) => report.gateway?.requests },
    { counter: errors, labels: {}, of: (report) => report.gateway?.errors },
    { counter: restarts, labels: {}, of: (report) => report.gateway?.worker_restarts },
  ];
  const refused = new Counter({
    name: 'svc_telemetry_refused_total',
    help: 'Reports of agents whose counters were refused, because no link can have carried so much',
    registers: [],
  });
  // Without this, a counter with labels is absent until it is first counted.
  for (const { counter, labels } of totals) counter.inc(labels, 0);
  return {
    /** @param before the previous report of the same process */
    note(report: MetricsFacts, before: MetricsFacts | undefined): void {
      reports.inc();
      for (const { counter, labels, of } of totals) {
        const now = of(report);
        if (now !== undefined) counter.inc(labels, growthOf(before && of(before), now));
      }
    },
    /** Counts a report with more bytes than any link carries. */
    refused: (): void => refused.inc(),
    metrics: (): readonly Metric[] => [connections, bytes, requests, errors, restarts, reports, ...gauges, refused],
  };
}
