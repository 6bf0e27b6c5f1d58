/**
 * What became of the commands to an agent, and what it measures (`docs/contract/rest.md#nodes`,
 * `docs/contract/rest.md#l4-upstreams`, `docs/contract/domain.md#health-of-a-chain`).
 */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { limits } from '../../src/kernel/limits.js';
import type { MetricsFacts } from '../../src/reports/port.js';
import { eventually } from '../support/eventually.js';
import { createManualClock } from '../support/manual-clock.js';
import { processNamed } from '../support/reported-tables.js';
import { startRest, type RestFixture } from '../support/rest-fixture.js';
import { turnsDuring } from '../support/turns.js';

const clock = createManualClock();
let rest: RestFixture;
let nodeId: string;
beforeAll(async () => {
  rest = await startRest({ tokenTtlSeconds: 30 * 86_400 }, clock);
});
beforeEach(async () => {
  nodeId = (await rest.data('POST', '/api/nodes', { body: { name: 'exit', address: 'exit.example' } })).id;
});
afterEach(async () => {
  vi.restoreAllMocks();
  for (const list of ['/api/l4-chains', '/api/l4-upstreams', '/api/nodes']) {
    for (const { id } of (await rest.data('GET', list)).items) await rest.data('DELETE', `${list}/${id}`);
  }
});
afterAll(() => rest.close());

const now = (): string => new Date(clock.now()).toISOString();

describe('the commands to an agent', () => {
  const queue = (): Promise<{ id: string; expires_at: string }> =>
    rest.data('POST', `/api/nodes/${nodeId}/commands`, { role: 'operator', body: { command: 'RUN_DIAGNOSTICS' } });
  const list = async () => (await rest.data('GET', `/api/nodes/${nodeId}/commands`, { role: 'viewer' })).items;
  const claim = (): Promise<readonly string[]> =>
    rest.claims.claim(nodeId, rest.deps.fleet.node(nodeId)?.commands ?? []);

  test('are shown newest first, each as queued, delivered or expired, with who queued it', async () => {
    expect(await list()).toEqual([]);
    const queued_at = now();
    const delivered = await queue();
    clock.advance(1000);
    // A slow claim is answered by a later call.
    await eventually(claim).toEqual(['RUN_DIAGNOSTICS']);
    const delivered_at = now();
    const expired = await queue();
    clock.advance(limits.agent.commandExpiryMs);
    const waiting = await queue();

    const items = await list();
    expect(items.map(({ id, state }: { id: string; state: string }) => [id, state])).toEqual([
      [waiting.id, 'queued'],
      [expired.id, 'expired'],
      [delivered.id, 'delivered'],
    ]);
    const { expires_at } = delivered;
    const actor = { type: 'user', id: expect.any(String), name: 'operator' };
    expect(items[2]).toEqual({
      id: delivered.id,
      command: 'RUN_DIAGNOSTICS',
      state: 'delivered',
      queued_at,
      delivered_at,
      expires_at,
      actor,
    });
    expect(items[1].delivered_at).toBeNull();
  });

  test(`are the last ${limits.rest.nodeCommands}`, async () => {
    const ids: string[] = [];
    for (let count = 0; count < limits.agent.queuedCommands + 1; count += 1) {
      if (count === 20) clock.advance(limits.agent.commandExpiryMs);
      ids.push((await queue()).id);
    }
    const shown = (await list()).map(({ id }: { id: string }) => id);
    expect(shown).toEqual(ids.slice(-limits.rest.nodeCommands).toReversed());
  });
});

describe('metrics', () => {
  const metrics = (over: Partial<MetricsFacts> = {}): MetricsFacts => ({
    connections: null,
    bandwidth: null,
    gateway: null,
    ...over,
  });
  const gateway = (...upstreams: readonly { cluster: string; healthy: boolean }[]): MetricsFacts =>
    metrics({
      gateway: {
        requests: 7,
        errors: 2,
        worker_restarts: 0,
        latency_p50_ms: 1.5,
        latency_p99_ms: 9.5,
        upstreams: upstreams.map((one) => ({ ...one, requests: 7, errors: 2, latency_p99_ms: 9.5 })),
      },
    });
  async function report(facts: MetricsFacts): Promise<string> {
    clock.advance(1000);
    rest.reports.metrics(nodeId, facts, processNamed(''));
    await rest.reports.flush();
    return now();
  }
  const shown = () => rest.data('GET', `/api/nodes/${nodeId}/metrics`, { role: 'viewer' });

  test('are null before a report, then what the agent reported, with the upstreams by name', async () => {
    expect(await shown()).toEqual({ reported_at: null, connections: null, bandwidth: null, gateway: null });
    const { id } = await rest.data('POST', '/api/l4-upstreams', { body: { name: 'web', endpoint: '192.0.2.1:80' } });
    const connections = { active: 1, accepted: 2 ** 40, closed: 3, failed: 4, handshake_failures: 5 };
    const listener = { transport: 'tcp', listen_addr: '::', listen_port: 443, bytes_in: 6, bytes_out: 7 };
    const bandwidth = {
      bytes_in: 6,
      bytes_out: 7,
      bits_in_per_second: 0.5,
      bits_out_per_second: 1.5,
      listeners: [listener],
    };
    const facts = { ...gateway({ cluster: id, healthy: true }, { cluster: 'route', healthy: false }) };
    const reported_at = await report({ ...facts, connections, bandwidth });
    expect(await shown()).toEqual({
      reported_at,
      connections,
      bandwidth,
      gateway: {
        ...facts.gateway,
        upstreams: [
          { ...facts.gateway?.upstreams[0], upstream_id: id, upstream_name: 'web' },
          { ...facts.gateway?.upstreams[1], upstream_id: null, upstream_name: null },
        ],
      },
    });
  });

  test('tell of an upstream how each node that dials it sees it, and since when', async () => {
    const { id } = await rest.data('POST', '/api/l4-upstreams', { body: { name: 'web', endpoint: '192.0.2.1:80' } });
    const health = async () => (await rest.data('GET', `/api/l4-upstreams/${id}/health`, { role: 'viewer' })).items;
    const chain = await rest.data('POST', '/api/l4-chains', {
      body: {
        name: 'c',
        payload: 'tcp',
        target: { upstream_id: id },
        hops: [{ node_id: nodeId, listen_port: 443, outer: 'tcp', security: 'raw' }],
      },
    });
    expect(await health()).toEqual([]);
    await rest.data('POST', `/api/l4-chains/${chain.id}/deploy`);
    const node = { node_id: nodeId, node_name: 'exit' };
    const unknown = { healthy: null, since: null, requests: null, errors: null, latency_p99_ms: null };
    expect(await health()).toEqual([{ ...node, ...unknown }]);

    const counted = { requests: 7, errors: 2, latency_p99_ms: 9.5 };
    const since = await report(gateway({ cluster: id, healthy: true }));
    await report(gateway({ cluster: id, healthy: true }));
    expect(await health()).toEqual([{ ...node, healthy: true, since, ...counted }]);
    const failed = await report(gateway({ cluster: id, healthy: false }));
    expect(await health()).toEqual([{ ...node, healthy: false, since: failed, ...counted }]);
    await rest.connect(nodeId);
    const { state, reasons } = (await rest.data('GET', `/api/l4-chains/${chain.id}`)).health;
    expect(state).toBe('down');
    expect(reasons).toContain('upstream "web" is unhealthy, as "exit" reports');
    // A chain that is not run dials nothing.
    await rest.data('PUT', `/api/l4-chains/${chain.id}`, { body: { enabled: false } });
    expect(await health()).toEqual([]);
  });

  test('of an upstream that many nodes dial come by name, in turns of the event loop', async () => {
    const { id } = await rest.data('POST', '/api/l4-upstreams', { body: { name: 'web', endpoint: '192.0.2.1:80' } });
    const hops = [{ node_id: nodeId, listen_port: 443, outer: 'tcp', security: 'raw' }];
    const body = { name: 'c', payload: 'tcp', target: { upstream_id: id }, hops };
    const chain = await rest.data('POST', '/api/l4-chains', { body });
    await rest.data('POST', `/api/l4-chains/${chain.id}/deploy`);
    const [live] = rest.deps.fleet.chainsWith(id);
    const idOf = (number: number): string => `00000000-0000-4000-8000-${String(number).padStart(12, '0')}`;
    // As if each of many nodes had such a chain.
    const chains = Array.from({ length: 1_000 }, (_, number) => {
      const fakes = hops.map((hop) => ({ ...live!.deployed!.hops[0]!, ...hop, node_id: idOf(999 - number) }));
      return { ...live!, deployed: { ...live!.deployed!, hops: fakes } } as typeof live & object;
    });
    vi.spyOn(rest.deps.fleet, 'chainsWith').mockReturnValue(chains);
    const [{ items }, turns] = await turnsDuring(rest.data('GET', `/api/l4-upstreams/${id}/health`));
    expect(items.map(({ node_name }: { node_name: string }) => node_name)).toEqual(chains.map((_, at) => idOf(at)));
    expect(turns).toBeGreaterThan(30);
  });
});
