/**
 * The port table, the runtime table and the links over REST, on a fleet with every kind of route
 * (`docs/contract/rest.md#port-management` and `docs/contract/rest.md#nodes`).
 */
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import type { LinkSample } from '../../src/reports/port.js';
import { linkOfChain, runningListener } from '../support/reported-tables.js';
import { realityOver, startRest, type JsonData, type RestFixture } from '../support/rest-fixture.js';
import { turnsDuring } from '../support/turns.js';

let rest: RestFixture;
/** Nodes, credentials and chains by name. */
const ids: Record<string, string> = {};
let noiseKey: string;

const post = async (url: string, body: object): Promise<JsonData> => {
  const made = await rest.data('POST', url, { body });
  ids[made.name] = made.id;
  return made;
};
const hop = (node: string, listen_port: number, more: object = {}) => ({
  node_id: ids[node],
  listen_port,
  outer: 'tcp',
  security: 'raw',
  ...more,
});
const chain = (name: string, hops: object[], more: object = {}) =>
  post('/api/l4-chains', { name, payload: 'tcp', hops, target: { endpoint: '192.0.2.9:9' }, ...more });
const deploy = (name: string) => rest.data('POST', `/api/l4-chains/${ids[name]}/deploy`);
const ports = (query = ''): Promise<JsonData> => rest.data('GET', `/api/nodes/ports${query}`);
const runtime = (query = ''): Promise<JsonData> => rest.data('GET', `/api/nodes/ports/runtime${query}`);
const byDefault = ['reality', 'tls', 'noise', 'raw'];

beforeAll(async () => {
  rest = await startRest();
  // Not in the order of their names.
  await post('/api/nodes', { name: 'out', address: 'out.example' });
  await post('/api/nodes', { name: 'Edge', address: 'edge.example' });
  await post('/api/nodes', { name: 'quiet' });
  await post('/api/l4-upstreams', { name: 'web', endpoint: 'web.example:443' });
  noiseKey = (await post('/api/credentials', { name: 'keys', key_type: 'x25519' })).public_key;
  await post('/api/credentials', realityOver(ids['keys'] ?? '', 'identity', ['r2.example', 'r1.example']));
  await post('/api/credentials', {
    name: 'cert',
    key_type: 'tls_cert',
    self_signed: { common_name: 't.example' },
  });
  const reality = { security: 'reality', credential_id: ids['identity'] };
  await chain('reality', [hop('Edge', 443, reality)]);
  await chain('tls', [hop('Edge', 443, { security: 'tls', credential_id: ids['cert'] })], {
    target: { upstream_id: ids['web'] },
  });
  await chain('names', [hop('Edge', 443, { server_names: ['s.example'] }), hop('out', 81)]);
  await chain('fallback', [hop('Edge', 443)], { target: { upstream_id: ids['web'] } });
  await chain('quic', [hop('Edge', 443, { ...reality, outer: 'quic', server_names: ['r1.example'] })]);
  await chain('noise', [hop('Edge', 443, { outer: 'udp', security: 'noise', credential_id: ids['keys'] })], {
    payload: 'udp',
  });
  await chain('dns', [hop('Edge', 443, { outer: 'udp' }), hop('quiet', 53, { outer: 'udp' })], { payload: 'udp' });
  await post('/api/routes', {
    name: 'site',
    host: 'www.example',
    hops: [
      { node_id: ids['Edge'], listen_port: 80 },
      { node_id: ids['out'], listen_port: 82 },
    ],
    backend: '192.0.2.8:80',
  });
  await post('/api/l3-networks', {
    name: 'net',
    credential_id: ids['identity'],
    server_name: 'r2.example',
    members: ['Edge', 'out'].map((node, index) => ({
      node_id: ids[node],
      interface_name: 'tun0',
      addresses: [`10.9.0.${index + 1}/24`],
      routes: [],
    })),
    tunnels: [
      { listener_node_id: ids['Edge'], listen_addr: '0.0.0.0', listen_port: 443, connector_node_id: ids['out'] },
    ],
  });
  await deploy('tls');
  await deploy('names');
});
afterAll(() => rest.close());

describe('the port table', () => {
  test('has every node, sorted by name, and every intended listener with its routes', async () => {
    const { nodes, items, defaultPriorityOrder } = await ports();
    expect(defaultPriorityOrder).toEqual(byDefault);
    expect(nodes).toEqual(['Edge', 'out', 'quiet'].map((name) => ({ id: ids[name], name, status: 'pending' })));
    const route = (
      name: string,
      source: string,
      label: string,
      kind: string,
      value: string,
      nextHop: string,
      deployed = false,
    ) => ({
      source,
      sourceLabel: label,
      matchKind: kind,
      matchValue: value,
      nextHop,
      resourceType: name === 'site' ? 'route' : name === 'net' ? 'l3_network' : 'l4_chain',
      resourceId: ids[name],
      resourceName: name,
      deployed,
    });
    const item = (node: string, transport: string, listenPort: number, routes: object[]) => ({
      nodeId: ids[node],
      transport,
      listenAddr: '0.0.0.0',
      listenPort,
      priorityOrder: byDefault,
      policySaved: false,
      routes,
      runtimeState: null,
      runtimeStale: true,
    });
    const end = '192.0.2.9:9';
    expect(items).toEqual([
      item('Edge', 'tcp', 80, [
        route('site', 'l4_chain', 'route: site', 'default', 'www.example/', 'out.example:82', true),
      ]),
      item('Edge', 'tcp', 443, [
        route('reality', 'l4_chain', 'reality', 'reality', 'r1.example', end),
        route('reality', 'l4_chain', 'reality', 'reality', 'r2.example', end),
        route('names', 'l4_chain', 'names', 'sni', 's.example', 'out.example:81', true),
        route('fallback', 'l4_upstream', 'web', 'default', '', 'web.example:443'),
        route('tls', 'l4_upstream', 'web', 'sni', 't.example', 'web.example:443', true),
      ]),
      item('Edge', 'udp', 443, [
        route('net', 'l3_network', 'net', 'l3_context', '1', 'tun0', true),
        route('dns', 'l4_chain', 'dns', 'default', '', ''),
        route('noise', 'l4_chain', 'noise', 'local_key', noiseKey, end),
        route('quic', 'l4_chain', 'quic', 'reality', 'r1.example', end),
      ]),
      item('out', 'tcp', 81, [route('names', 'l4_chain', 'names', 'default', '', end, true)]),
      item('out', 'tcp', 82, [
        route('site', 'l4_chain', 'route: site', 'default', 'www.example/', '192.0.2.8:80', true),
      ]),
      item('quiet', 'udp', 53, [route('dns', 'l4_chain', 'dns', 'default', '', end)]),
    ]);
  });

  test('shows an edit that is not deployed, and what it replaces no more', async () => {
    const url = `/api/l4-chains/${ids['names']}`;
    const before = await rest.data('GET', url);
    const hops = [{ ...before.hops[0], server_names: ['s.example', 'new.example'] }, before.hops[1]];
    await rest.data('PUT', url, { body: { hops } });
    const [, shared] = (await ports(`?node_id=${ids['Edge']}`)).items;
    const shown = shared.routes.filter(({ resourceId }: JsonData) => resourceId === ids['names']);
    expect(shown.map(({ matchValue, deployed }: JsonData) => [matchValue, deployed])).toEqual([
      ['new.example', false],
      ['s.example', true],
    ]);
    await rest.data('PUT', url, { body: { hops: before.hops } });
  });

  test('shows a policy on its listener, and one without routes as a row of its own', async () => {
    const policy = { nodeId: ids['out'], transport: 'tcp', listenAddr: '0.0.0.0', priorityOrder: ['raw'] };
    for (const listenPort of [81, 9999]) {
      await rest.data('PUT', '/api/nodes/ports/policies', { body: { ...policy, listenPort } });
    }
    const order = ['raw', 'reality', 'tls', 'noise'];
    const of = async () =>
      (await ports(`?node_id=${ids['out']}`)).items.map((row: JsonData) => [
        row.listenPort,
        row.policySaved,
        row.priorityOrder,
        row.routes.length,
      ]);
    expect(await of()).toEqual([
      [81, true, order, 1],
      [82, false, byDefault, 1],
      [9999, true, order, 0],
    ]);
    for (const listenPort of [81, 9999]) {
      const query = new URLSearchParams({
        nodeId: ids['out'] ?? '',
        transport: 'tcp',
        listenAddr: '0.0.0.0',
        listenPort: `${listenPort}`,
      });
      await rest.data('DELETE', `/api/nodes/ports/policies?${query}`);
    }
    expect(await of()).toEqual([
      [81, false, byDefault, 1],
      [82, false, byDefault, 1],
    ]);
  });

  test('of one node has its rows and all nodes to choose from; of an unknown one, no rows', async () => {
    const one = await ports(`?node_id=${ids['quiet']}`);
    expect(one.nodes).toHaveLength(3);
    expect(one.items.map((row: JsonData) => row.nodeId)).toEqual([ids['quiet']]);
    expect(await ports('?node_id=00000000-0000-4000-8000-000000000000')).toEqual({ ...one, items: [] });
  });

  test('has the state that the agent last reported of a listener, in whatever notation it writes addresses', async () => {
    await post('/api/nodes', { name: 'six' });
    await chain('v6', [hop('six', 443, { listen_addr: '2001:db8::1' }), hop('out', 91)]);
    const state = async () => (await ports(`?node_id=${ids['six']}`)).items[0].runtimeState;
    expect(await state()).toBeNull();
    const other = runningListener(443, { transport: 'udp', listen_addr: '2001:db8::1', state: 'other' });
    await rest.report(ids['six'] ?? '', {
      runtime_listeners: [other, runningListener(443, { listen_addr: '2001:DB8:0:0::1' })],
    });
    expect(await state()).toBe('running');
    const found = async (query: string) => (await ports(`?node_id=${ids['six']}&${query}`)).items.length;
    const runtimeOf = async (query: string) => {
      const { nodes } = await runtime(`?node_id=${ids['six']}${query}`);
      return nodes[0].listeners.map(({ transport }: JsonData) => transport);
    };
    expect([await found('running=true'), await found('running=false'), await found('transport=udp')]).toEqual([
      1, 0, 0,
    ]);
    expect(await runtimeOf('&intended=false')).toEqual(['udp', 'tcp']);
    await rest.report(ids['six'] ?? '', {
      runtime_listeners: [other, runningListener(443, { listen_addr: '2001:DB8::1', state: 'failed: port in use' })],
    });
    expect(await state()).toBe('failed: port in use');
    // Only a deployed listener can be missing or expected.
    expect(await found('running=false')).toBe(0);
    await deploy('v6');
    expect([await found('running=false'), await found('running=false&listen_port=442')]).toEqual([1, 0]);
    expect(await runtimeOf('&intended=true')).toEqual(['tcp']);
    expect(await runtimeOf('&intended=false')).toEqual(['udp']);
    // A deployed one that is not reported is missing, as in a chain's `hop_status`.
    await rest.report(ids['six'] ?? '', {});
    expect(await state()).toBe('missing');
  });
});

describe('the runtime table', () => {
  const route = {
    service: 'relay',
    payload: 'tcp',
    outer: 'tcp',
    security: 'raw',
    match_kind: 'default',
    match_value: '',
    next_hop: '192.0.2.9:9',
    state: null,
  };
  beforeAll(async () => {
    await post('/api/nodes', { name: 'reporting' });
    await rest.report(ids['reporting'] ?? '', {
      runtime_listeners: [
        runningListener(443, {
          routes: [route],
          bytes_in: 5,
          bytes_out: 0,
          active_sessions: 1,
          total_sessions: 7,
          error_sessions: 2,
        }),
        runningListener(80, { listen_addr: '::' }),
        runningListener(443, { transport: 'udp', listen_addr: 'FD00::0001', state: 'starting' }),
      ],
    });
  });
  const of = async (query = ''): Promise<JsonData> => {
    const { nodes } = await runtime(query);
    return nodes.find((node: JsonData) => node.nodeId === ids['reporting']);
  };

  test('has what the agent reported, as it did; counters only where it reported them', async () => {
    expect(await of()).toEqual({
      nodeId: ids['reporting'],
      name: 'reporting',
      status: 'pending',
      reportedAt: expect.stringMatching(/^\d{4}-.*Z$/),
      stale: true,
      listeners: [
        {
          transport: 'tcp',
          listenAddr: '0.0.0.0',
          listenPort: 443,
          state: 'running',
          routes: [
            {
              service: 'relay',
              payload: 'tcp',
              outer: 'tcp',
              security: 'raw',
              matchKind: 'default',
              matchValue: '',
              nextHop: '192.0.2.9:9',
              state: null,
            },
          ],
          bytesIn: 5,
          bytesOut: 0,
          activeSessions: 1,
          totalSessions: 7,
          errorSessions: 2,
        },
        { transport: 'tcp', listenAddr: '::', listenPort: 80, state: 'running', routes: [] },
        { transport: 'udp', listenAddr: 'FD00::0001', listenPort: 443, state: 'starting', routes: [] },
      ],
    });
  });

  test('keeps nodes without a report, with null, and those without a match, with no listeners', async () => {
    const { nodes } = await runtime('?transport=udp&listen_port=1');
    const names = nodes.map((node: JsonData) => node.name.toLowerCase());
    expect(names).toEqual(names.toSorted());
    expect(names).toEqual(expect.arrayContaining(['edge', 'out', 'quiet', 'reporting']));
    const shown = Object.fromEntries(nodes.map((node: JsonData) => [node.name, [node.reportedAt, node.listeners]]));
    expect(shown['quiet']).toEqual([null, []]);
    expect(shown['reporting']).toEqual([expect.any(String), []]);
  });

  test.each<[string, number]>([
    ['?transport=tcp', 2],
    ['?transport=udp', 1],
    ['?listen_port=443', 2],
    ['?listen_addr=0.0.0.0', 1],
    ['?listen_addr=fd00::1', 1],
    ['?listen_addr=0:0::0', 1],
    ['?listen_addr=::ffff:0.0.0.0', 1],
    ['?transport=tcp&listen_addr=::&listen_port=80', 1],
    ['?transport=udp&listen_addr=::&listen_port=80', 0],
  ])('filters by %s', async (query, expected) => {
    expect((await of(query)).listeners).toHaveLength(expected);
  });

  test('of one node has that node alone; of an unknown one, none', async () => {
    const { nodes } = await runtime(`?node_id=${ids['reporting']}&listen_port=80`);
    expect(nodes.map((node: JsonData) => [node.name, node.listeners.length])).toEqual([['reporting', 1]]);
    expect(await runtime('?node_id=00000000-0000-4000-8000-000000000000')).toEqual({ nodes: [] });
  });
});

describe('the links between nodes', () => {
  const figures = { rtt_ms: 1.5, jitter_ms: 0.25, loss_ratio: 0, bytes_in: 10, bytes_out: 20 };
  const sample = (more: Partial<LinkSample>): LinkSample =>
    linkOfChain(ids['names'] ?? '', { peer_endpoint: 'out.example:81', ...figures, ...more });
  const nothing = {
    rtt_ms: null,
    jitter_ms: null,
    loss_ratio: null,
    bytes_in: null,
    bytes_out: null,
    measured_at: null,
  };
  const link = async (resource: string): Promise<JsonData> => {
    const { items } = await rest.data('GET', '/api/nodes/links');
    return items.find((item: JsonData) => item.resource_id === ids[resource]);
  };
  const key = (resource: string, kind: string, from: string, to: string) => ({
    from_node_id: ids[from],
    to_node_id: ids[to],
    kind,
    resource_id: ids[resource],
  });

  test('are those that the configuration intends, with nulls until an agent has measured them', async () => {
    expect(await link('names')).toEqual({ ...key('names', 'l4_chain', 'Edge', 'out'), ...nothing });
    expect(await link('site')).toEqual({ ...key('site', 'route', 'Edge', 'out'), ...nothing });
    expect(await link('dns')).toEqual({ ...key('dns', 'l4_chain', 'Edge', 'quiet'), ...nothing });
    expect(await link('net')).toEqual({ ...key('net', 'l3_network', 'out', 'Edge'), ...nothing });
    expect(await link('fallback')).toBeUndefined();
  });

  test('have what the agent that dials has measured, whether it names the node or the endpoint', async () => {
    const report = (...link_metrics: LinkSample[]) => rest.report(ids['Edge'] ?? '', { link_metrics });
    await report(
      sample({}),
      sample({
        resource_type: 'route',
        resource_id: ids['site'] ?? '',
        peer_node_id: ids['out'] ?? '',
        peer_endpoint: '',
        rtt_ms: null,
      }),
      // These are of an unknown resource, of the target behind the last hop, and of a resource of another type.
      sample({ resource_id: 'unknown', bytes_in: 999 }),
      sample({ peer_endpoint: '192.0.2.9:9', bytes_in: 999 }),
      sample({ resource_type: 'route', bytes_in: 999 }),
    );
    const measured = { ...figures, measured_at: expect.stringMatching(/Z$/) };
    expect(await link('names')).toEqual({ ...key('names', 'l4_chain', 'Edge', 'out'), ...measured });
    expect(await link('site')).toMatchObject({ ...measured, rtt_ms: null });
    expect(await link('dns')).toMatchObject(nothing);
    const ofChain = await rest.data('GET', `/api/l4-chains/${ids['names']}/links`, { role: 'viewer' });
    expect(ofChain).toEqual({ items: [await link('names')] });

    await report(sample({}), sample({ rtt_ms: 9, jitter_ms: null, loss_ratio: 0.5, bytes_in: 1, bytes_out: 2 }));
    expect(await link('names')).toMatchObject({
      rtt_ms: 9,
      jitter_ms: 0.25,
      loss_ratio: 0.5,
      bytes_in: 11,
      bytes_out: 22,
    });
  });

  test('have what the other end has measured when the one that dials has not, seen from the dialler', async () => {
    await rest.report(ids['Edge'] ?? '', {});
    await rest.report(ids['out'] ?? '', {
      link_metrics: [sample({ peer_node_id: ids['Edge'] ?? '', peer_endpoint: '', bytes_in: 3, bytes_out: 4 })],
    });
    expect(await link('names')).toMatchObject({ rtt_ms: 1.5, bytes_in: 4, bytes_out: 3 });
    // Only the node that dials can name a link by its endpoint.
    await rest.report(ids['out'] ?? '', { link_metrics: [sample({})] });
    expect(await link('names')).toMatchObject(nothing);
  });

  test('of one node are those from it and those to it', async () => {
    const nameOf = (id: string): string => Object.keys(ids).find((one) => ids[one] === id) ?? '';
    const ends = async (name: string): Promise<string[][]> => {
      const { items } = await rest.data('GET', `/api/nodes/${ids[name]}/links`);
      return items.map((item: JsonData) => [
        nameOf(item.from_node_id),
        nameOf(item.to_node_id),
        nameOf(item.resource_id),
      ]);
    };
    expect(await ends('quiet')).toEqual([['Edge', 'quiet', 'dns']]);
    expect(await ends('out')).toEqual(
      expect.arrayContaining([
        ['Edge', 'out', 'names'],
        ['out', 'Edge', 'net'],
      ]),
    );
  });
});

describe('an answer about all nodes', () => {
  const urls = ['/api/nodes/ports', '/api/nodes/ports/runtime', '/api/nodes/links'];

  test.each(urls)('%s shows what a command has just written', async (url) => {
    const before = JSON.stringify(await rest.data('GET', url));
    for (let round = 0; round < 5; round += 1) {
      const name = `new ${url} ${round}`;
      const { id } = await post('/api/nodes', { name, address: 'new.example' });
      await chain(`to ${name}`, [hop('out', 1000 + round * 3 + urls.indexOf(url)), hop(name, 80)]);
      const after = JSON.stringify(await rest.data('GET', url));
      expect(after).toContain(id);
      expect(before).not.toContain(id);
    }
  });

  test('that fails half-way is cut, so that no part of it passes for the whole', async () => {
    const { id } = await post('/api/nodes', { name: 'a first one with much to tell' });
    const many = Array.from({ length: 1000 }, (_, index) => runningListener(1 + index));
    await rest.report(id, { runtime_listeners: many });
    const whole = await rest.call('GET', '/api/nodes/ports/runtime');
    expect(whole.headers['content-type']).toBe('application/json; charset=utf-8');
    expect(whole.body.length).toBeGreaterThan(64 * 1024);
    expect(whole.json().data.nodes[0].listeners).toHaveLength(1000);
    const { listeners } = rest.deps.reports;
    let asked = 0;
    vi.spyOn(rest.deps.reports, 'listeners').mockImplementation((nodeId) => {
      if ((asked += 1) > 25) throw new Error('broken');
      return listeners(nodeId);
    });
    for (let index = 0; index < 30; index += 1) {
      await post('/api/nodes', { name: `z ${index}`, issue_psk: false });
    }
    const outcome = await rest.call('GET', '/api/nodes/ports/runtime').then(
      (answer) => answer.body,
      () => 'cut',
    );
    vi.restoreAllMocks();
    expect(outcome).toBe('cut');
    await rest.data('DELETE', `/api/nodes/${id}`);
  });

  test('lets other work have its turn between slices of nodes', async () => {
    const created = Array.from({ length: 150 }, (_, index) =>
      post('/api/nodes', { name: `one of many ${index}`, issue_psk: false }),
    );
    await Promise.all(created);
    const [{ nodes }, turns] = await turnsDuring(ports());
    expect(nodes.length).toBeGreaterThan(150);
    expect(turns).toBeGreaterThan(10);
  });
});

test.each([
  'ports?listen_port=0',
  'ports?listen_port=65536',
  'ports/runtime?listen_port=0',
  'ports/runtime?listen_port=65536',
])('no port is asked for by %s', async (query) => {
  const { statusCode, body } = await rest.call('GET', `/api/nodes/${query}`);
  expect([statusCode, JSON.parse(body).error]).toEqual([
    400,
    expect.stringContaining('invalid_request: listen_port: '),
  ]);
});

test('the endpoint of agents is at the host that the request names, and on the port of their listener', async () => {
  const at = async (host: string): Promise<unknown> =>
    (await rest.call('GET', '/api/nodes/control-endpoint', { headers: { host } })).json().data?.endpoint;
  const port = rest.agents.split(':').at(-1);
  expect(await at('control.example')).toBe(`http://control.example:${port}`);
  expect(await at('control.example:8081')).toBe(`http://control.example:${port}`);
  expect(await at('[2001:db8::1]:8081')).toBe(`http://[2001:db8::1]:${port}`);
  expect((await rest.call('GET', '/api/nodes/control-endpoint', { headers: { host: 'a b' } })).statusCode).toBe(400);
});

test('what names a node stands in the way of its deletion', async () => {
  const { items } = await rest.data('GET', `/api/nodes/${ids['quiet']}/referrers`);
  expect(items).toEqual([{ type: 'l4_chain', id: ids['dns'], name: 'dns' }]);
  const refused = await rest.call('DELETE', `/api/nodes/${ids['quiet']}`);
  expect([refused.statusCode, refused.json().error]).toEqual([409, expect.stringContaining('"dns"')]);
});
