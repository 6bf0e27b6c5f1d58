/**
 * Routes and listener policies down to an agent, and what the agent reports beside what is intended: the port table, the
 * runtime table and the links (`docs/contract/rest.md#legacy-routes`, `docs/contract/rest.md#port-management`).
 */
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { RuntimeConfigSnapshot } from '../../src/gen/svc/control/v1/config.js';
import type { LinkMetric } from '../../src/gen/svc/control/v1/heartbeat.js';
import { OuterTransport } from '../../src/gen/svc/control/v1/transport.js';
import { applied, attach, configRequest, enrol, heartbeat, runtimeListener } from './support/agent.js';
import type { Attached } from './support/agent.js';
import { createNode, hasExactly, rfc3339 } from './support/resources.js';
import type { NewNode } from './support/resources.js';
import { sharedService } from './support/running.js';

type Json = Record<string, unknown>;

const shared = sharedService();
let agent: Attached;
let edge: NewNode;
let out: NewNode;
let route: Json & { readonly id: string };
let first: RuntimeConfigSnapshot;

beforeAll(async () => {
  const { api, service } = shared;
  [edge, out] = [await createNode(api, { address: 'edge.example' }), await createNode(api, { address: '2001:db8::7' })];
  agent = await attach(service.controlEndpoint, enrol(edge.id, edge.control_psk));
  agent.control.say(configRequest());
  agent.control.say(applied(await agent.control.snapshot()));
  route = await api.ok('POST', '/api/routes', {
    name: 'site',
    host: 'WWW.Example',
    hops: [edge, out].map(({ id }) => ({ node_id: id, listen_port: 8080 })),
    backend: '192.0.2.8:80',
  });
  first = await agent.control.snapshot();
});
afterAll(() => agent.link.close());

const items = async (query: string): Promise<readonly Json[]> =>
  (await shared.api.ok<{ items: readonly Json[] }>('GET', `/api/nodes/ports${query}`)).items;

it('a route is pushed to its nodes as soon as it is saved, with a cluster of its own', async () => {
  const ruleId = `${route.id}/0`;
  expect(first.gateway?.httpProxyRules).toEqual([
    {
      ruleId,
      origin: { resourceType: 'route', resourceId: route.id, resourceName: 'site', hopIndex: 0 },
      listenAddr: '0.0.0.0',
      listenPort: 8080,
      host: 'www.example',
      pathPrefix: '/',
      upstreamCluster: ruleId,
    },
  ]);
  expect(first.gateway?.upstreamClusters).toEqual([
    { name: ruleId, endpoints: ['[2001:db8::7]:8080'], serverNames: [], enabled: true, healthCheck: undefined },
  ]);
  hasExactly(
    route,
    'id name host path_prefix enabled hops backend managed_by created_at updated_at version'.split(' '),
  );
});

it('a policy is pushed in the snapshot of its node', async () => {
  const { api } = shared;
  const policy = { nodeId: edge.id, transport: 'tcp', listenAddr: '0.0.0.0', listenPort: 8080 };
  const saved = await api.ok('PUT', '/api/nodes/ports/policies', { ...policy, priorityOrder: ['raw', 'raw'] });
  const priorityOrder = ['raw', 'reality', 'tls', 'noise'];
  expect(saved).toEqual({ ...policy, priorityOrder, version: 1 });
  const { gateway } = await agent.control.snapshot();
  expect(gateway?.listenerPolicies).toEqual([
    { transport: 'tcp', listenAddr: '0.0.0.0', listenPort: 8080, priorityOrder },
  ]);
  expect(await items(`?node_id=${edge.id}`)).toMatchObject([{ ...policy, priorityOrder, policySaved: true }]);
});

it('what the agent reports is shown beside what is intended', async () => {
  const { api } = shared;
  const before = await api.ok('GET', `/api/nodes/ports/runtime?node_id=${edge.id}`);
  expect(before).toEqual({
    nodes: [{ nodeId: edge.id, name: edge.name, status: 'online', reportedAt: null, stale: false, listeners: [] }],
  });
  const used = { service: 'http', payload: 'tcp', outer: 'tcp', security: 'raw', matchKind: 'default' };
  const table = [
    runtimeListener({
      routes: [{ ...used, matchValue: 'www.example/', nextHop: '[2001:db8::7]:8080', state: '' }],
      bytesIn: 12n,
      bytesOut: 0n,
      totalSessions: 2n ** 60n,
    }),
    runtimeListener({ transport: 'udp', listenPort: 53, state: 'failed' }),
  ];
  const metric: LinkMetric = {
    resourceType: 'route',
    resourceId: route.id,
    peerNodeId: '',
    peerEndpoint: '[2001:db8::7]:8080',
    outer: OuterTransport.TCP,
    rttMs: 4.5,
    jitterMs: undefined,
    lossRatio: 0.25,
    bytesIn: 7n,
    bytesOut: 8n,
    activeSessions: 1n,
  };
  agent.control.say(heartbeat(1n, { runtimeListeners: table, linkMetrics: [metric] }));
  await agent.control.heartbeatResponse();
  await expect
    .poll(() => items(`?node_id=${edge.id}`), { timeout: 10_000, interval: 50 })
    .toMatchObject([
      { listenPort: 8080, runtimeState: 'running', routes: [{ sourceLabel: 'route: site', deployed: true }] },
    ]);
  expect(await items(`?node_id=${out.id}`)).toMatchObject([{ runtimeState: null }]);

  const { nodes } = await api.ok<{ nodes: readonly Json[] }>('GET', '/api/nodes/ports/runtime?transport=tcp');
  expect(nodes.find(({ nodeId }) => nodeId === edge.id)).toEqual({
    nodeId: edge.id,
    name: edge.name,
    status: 'online',
    reportedAt: expect.stringMatching(rfc3339),
    stale: false,
    listeners: [
      {
        transport: 'tcp',
        listenAddr: '0.0.0.0',
        listenPort: 8080,
        state: 'running',
        routes: [{ ...used, matchValue: 'www.example/', nextHop: '[2001:db8::7]:8080', state: null }],
        bytesIn: 12,
        bytesOut: 0,
        totalSessions: Number.MAX_SAFE_INTEGER,
      },
    ],
  });
  expect(nodes.find(({ nodeId }) => nodeId === out.id)).toMatchObject({ status: 'pending', reportedAt: null });

  expect(await api.ok('GET', '/api/nodes/links')).toEqual({
    items: [
      {
        from_node_id: edge.id,
        to_node_id: out.id,
        kind: 'route',
        resource_id: route.id,
        rtt_ms: 4.5,
        jitter_ms: null,
        loss_ratio: 0.25,
        bytes_in: 7,
        bytes_out: 8,
        measured_at: expect.stringMatching(rfc3339),
      },
    ],
  });
});

it('the hops of a route tell which of their nodes are there', async () => {
  const hop = (index: number, node: NewNode, next_hop: string, node_status: string) => ({
    index,
    node_id: node.id,
    node_name: node.name,
    listen_addr: '0.0.0.0',
    listen_port: 8080,
    next_hop,
    node_status,
  });
  expect(await shared.api.ok('GET', `/api/routes/${route.id}/hops`)).toEqual({
    items: [hop(0, edge, '[2001:db8::7]:8080', 'online'), hop(1, out, '192.0.2.8:80', 'pending')],
  });
});

it('a disabled route leaves the snapshots and the port table, and a deleted node takes its policies along', async () => {
  const { api } = shared;
  await api.ok('PUT', `/api/routes/${route.id}`, { enabled: false });
  const { gateway } = await agent.control.snapshot();
  expect([gateway?.httpProxyRules, gateway?.upstreamClusters]).toEqual([[], []]);
  expect(await items('')).toMatchObject([{ nodeId: edge.id, policySaved: true, routes: [], runtimeState: 'running' }]);
  const refused = await api.send('DELETE', `/api/nodes/${edge.id}`);
  expect([refused.status, refused.error]).toEqual([409, expect.stringContaining('route "site"')]);
  await api.ok('DELETE', `/api/routes/${route.id}`);
  await api.ok('DELETE', `/api/nodes/${edge.id}`);
  expect(await items('')).toEqual([]);
});
