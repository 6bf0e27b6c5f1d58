/**
 * What agents report of what is so now, added up in `/metrics` without naming a node
 * (`docs/contract/agent-protocol.md#heartbeats-commands-metrics`).
 */
import { describe, expect, test } from 'vitest';
import { MetricsReport } from '../../src/gen/svc/control/v1/metrics.js';
import { systemClock } from '../../src/kernel/clock.js';
import { createMetrics } from '../../src/instance/metrics.js';
import { createReportedTotals, type ReportedTotals } from '../../src/transport/agent/counters.js';

async function shown(totals: ReportedTotals): Promise<Record<string, number>> {
  const metrics = createMetrics(totals.metrics(), systemClock);
  const lines = (await metrics.text()).split('\n').filter((line) => line.startsWith('svc_'));
  metrics.close();
  return Object.fromEntries(lines.map((line) => [line.split(' ')[0], Number(line.split(' ')[1])]));
}
type Partly = Parameters<typeof MetricsReport.fromPartial>[0];
const report = (fields: Partly): MetricsReport => MetricsReport.fromPartial(fields);

describe('what agents report of their traffic', () => {
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
