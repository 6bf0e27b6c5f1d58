/** The fleet as it is counted, for the dashboard and for metrics (`docs/how-to/monitor.md`), by what agents report. */
import { afterEach, beforeEach, expect, test } from 'vitest';
import { silentLogger } from '../../src/kernel/logger.js';
import { keepCounts } from '../../src/reports/counts.js';
import { eventually } from '../support/eventually.js';
import { runningListener } from '../support/reported-tables.js';
import { startRest, type RestFixture } from '../support/rest-fixture.js';

let rest: RestFixture;
beforeEach(async () => void (rest = await startRest()));
afterEach(() => rest.close());

const counted = () => {
  const counts = rest.deps.counts.soFar();
  if (counts === undefined) return undefined;
  const { pending, online, offline } = counts.nodes;
  return {
    nodes: { pending, online, offline },
    listeners: Object.fromEntries(counts.listenerStates),
    chains: counts.chains,
    upstreams: counts.upstreams,
  };
};

test('counts nodes by status, intended listeners by state, chains and upstreams by health', async () => {
  const node = async (name: string): Promise<string> =>
    (await rest.data('POST', '/api/nodes', { body: { name, address: `${name}.example` } })).id;
  const [edge, left, other] = [await node('edge'), await node('left'), await node('other')];
  await node('pending');
  const upstream = async (name: string): Promise<string> =>
    (await rest.data('POST', '/api/l4-upstreams', { body: { name, endpoint: '192.0.2.1:80' } })).id;
  const [web, mail] = [await upstream('web'), await upstream('mail')];
  await upstream('unused');
  for (const [at, listen_port] of [443, 444, 445].entries()) {
    const hops = [{ node_id: edge, listen_port, outer: 'tcp', security: 'raw' }];
    const body = { name: `c${at}`, payload: 'tcp', hops, target: { upstream_id: web } };
    const { id } = await rest.data('POST', '/api/l4-chains', { body });
    await rest.data('POST', `/api/l4-chains/${id}/deploy`);
  }
  await eventually(counted).toEqual({
    nodes: { pending: 4, online: 0, offline: 0 },
    listeners: { running: 0, missing: 0 },
    chains: { ok: 0, degraded: 0, down: 0, unknown: 3 },
    upstreams: { healthy: 0, unhealthy: 0, unknown: 3 },
  });

  await rest.connect(edge);
  await rest.connect(other);
  await (await rest.connect(left)).disconnect();
  await rest.report(edge, { runtime_listeners: [runningListener(443), runningListener(444, { state: 'failed' })] });
  await rest.reportUpstreams(edge, { [web]: false, [mail]: true, 'a route': false });
  await rest.reportUpstreams(other, { [web]: true });
  await eventually(counted).toEqual({
    nodes: { pending: 1, online: 2, offline: 1 },
    listeners: { running: 1, failed: 1, missing: 1 },
    // All end in an unhealthy upstream; what a node reports of an upstream that it does not dial does not count.
    chains: { ok: 0, degraded: 0, down: 3, unknown: 0 },
    upstreams: { healthy: 0, unhealthy: 1, unknown: 2 },
  });
});

test('a node that cannot be judged keeps no other one from being judged', async () => {
  const [broken, sound] = await Promise.all(
    ['broken', 'sound'].map((name) => rest.data('POST', '/api/nodes', { body: { name, address: 'a.example' } })),
  );
  let report: (nodeId: string) => void = () => undefined;
  let fails = false;
  const { fleet, agentFacts, reports, clock } = rest.deps;
  const counts = keepCounts({
    fleet,
    agentFacts,
    reports: {
      ...reports,
      listenerStates(nodeId) {
        if (fails && nodeId === broken?.id) throw new Error('what is stored cannot be read');
        return reports.listenerStates(nodeId);
      },
    },
    onReport(listener) {
      report = listener;
      return () => undefined;
    },
    onFact: () => () => undefined,
    onBatch: () => () => undefined,
    clock,
    logger: silentLogger,
  });
  expect((await counts.now()).nodes).toMatchObject({ pending: 2, online: 0 });
  await rest.connect(sound?.id);
  fails = true;
  for (const node of [broken, sound]) report(node?.id);
  await expect(counts.now()).rejects.toThrow('cannot be read');
  expect((await counts.now()).nodes).toMatchObject({ pending: 1, online: 1 });
  await counts.close();
});
