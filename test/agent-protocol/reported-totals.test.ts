/**
 * What agents report of their traffic, added up in `/metrics` without naming a node
 * (`docs/contract/agent-protocol.md#heartbeats-commands-metrics`).
 */
import { describe, expect, test } from 'vitest';
import { MetricsReport } from '../../src/gen/svc/control/v1/metrics.js';
import { systemClock } from '../../src/kernel/clock.js';
import { createMetrics } from '../../src/instance/metrics.js';
import { createReportedTotals } from '../../src/transport/agent/counters.js';
import type { ReportedTotals } from '../../src/transport/agent/counters.js';

async function shown(totals: ReportedTotals): Promise<Record<string, number>> {
  const metrics = createMetrics(totals.metrics(), systemClock);
  const lines = (await metrics.text()).split('\n').filter((line) => line.startsWith('svc_'));
  metrics.close();
  return Object.fromEntries(lines.map((line) => [line.split(' ')[0], Number(line.split(' ')[1])]));
}
type Partly = Parameters<typeof MetricsReport.fromPartial>[0];
const report = (fields: Partly): MetricsReport => MetricsReport.fromPartial(fields);

describe('what agents report of their traffic', () => {
  test('counts as far as their counters rise from one report of a session to the next', async () => {
    const totals = createReportedTotals();
    const traffic = (count: bigint) =>
      report({
        connections: { active: 1n, accepted: count, closed: count, failed: count, handshakeFailures: count },
        bandwidth: { bytesIn: count * 10n, bytesOut: count * 100n },
        gateway: { requests: count, errors: count, workerRestarts: count },
      });
    totals.note('s1', traffic(5n));
    expect(await shown(totals)).toMatchObject({ svc_node_requests_total: 0, svc_agent_metrics_reports_total: 1 });
    totals.note('s2', traffic(1_000n));
    totals.note('s1', traffic(7n));
    totals.note('s2', traffic(1_001n));
    expect(await shown(totals)).toEqual({
      svc_agent_metrics_reports_total: 4,
      svc_node_connections: 2,
      'svc_node_connections_total{event="accepted"}': 3,
      'svc_node_connections_total{event="closed"}': 3,
      'svc_node_connections_total{event="failed"}': 3,
      'svc_node_connections_total{event="handshake_failed"}': 3,
      'svc_node_bytes_total{direction="in"}': 30,
      'svc_node_bytes_total{direction="out"}': 300,
      svc_node_requests_total: 3,
      svc_node_request_errors_total: 3,
      svc_node_worker_restarts_total: 3,
      'svc_node_upstreams{health="healthy"}': 0,
      'svc_node_upstreams{health="unhealthy"}': 0,
    });
  });

  test('counts from zero again when a counter has fallen, and not at all where a part is missing', async () => {
    const totals = createReportedTotals();
    totals.note('s1', report({ gateway: { requests: 100n }, connections: { accepted: 4n } }));
    totals.note('s1', report({ gateway: { requests: 3n } }));
    totals.note('s1', report({ gateway: { requests: 5n }, connections: { accepted: 9n } }));
    expect(await shown(totals)).toMatchObject({
      svc_node_requests_total: 5,
      'svc_node_connections_total{event="accepted"}': 0,
    });
  });

  test('is a sum of the last reports for what is so now, without the sessions that have ended', async () => {
    const totals = createReportedTotals();
    const upstreams = [{ healthy: true }, { healthy: false }, { healthy: true }];
    totals.note('s1', report({ connections: { active: 2n }, gateway: { upstreams } }));
    totals.note('s1', report({ connections: { active: 3n }, gateway: { upstreams } }));
    totals.note('s2', report({ connections: { active: 2n ** 64n - 1n } }));
    totals.ended('s2');
    expect(await shown(totals)).toMatchObject({
      svc_node_connections: 3,
      'svc_node_upstreams{health="healthy"}': 2,
      'svc_node_upstreams{health="unhealthy"}': 1,
    });
    totals.ended('s1');
    expect(await shown(totals)).toMatchObject({ svc_node_connections: 0, 'svc_node_upstreams{health="healthy"}': 0 });
  });
});
