/**
 * What nodes, chains and deployments show of their listeners, and the health of chains, against what agents report
 * (`docs/contract/rest.md#nodes`, `docs/contract/rest.md#l4-chains`, `docs/contract/domain.md#health-of-a-chain`).
 */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import type { LinkSample, RuntimeListener } from '../../src/reports/port.js';
import { eventually } from '../support/eventually.js';
import { linkOfChain, runningListener } from '../support/reported-tables.js';
import {
  realityOver,
  startRest,
  type ConnectedAgent,
  type JsonData,
  type RestFixture,
} from '../support/rest-fixture.js';

let rest: RestFixture;
let made = 0;
beforeAll(async () => {
  rest = await startRest();
});
beforeEach(() => {
  made += 1;
});
afterEach(() => vi.restoreAllMocks());
afterAll(() => rest.close());

const listener = (listen_port: number, state = 'running', more: Partial<RuntimeListener> = {}): RuntimeListener =>
  runningListener(listen_port, { state, ...more });

interface Site {
  readonly name: string;
  readonly id: string;
}
async function node(side: string): Promise<Site> {
  const name = `${side} ${made}`;
  const { id } = await rest.data('POST', '/api/nodes', { body: { name, address: `${side}.example` } });
  return { name, id };
}
const view = (of: Site): Promise<JsonData> => rest.data('GET', `/api/nodes/${of.id}`);

const hop = (on: Site, listen_port: number, more: object = {}): object => ({
  node_id: on.id,
  listen_port,
  outer: 'tcp',
  security: 'raw',
  ...more,
});

interface Chain {
  readonly id: string;
  get(): Promise<JsonData>;
  deploy(): Promise<JsonData>;
  put(body: object): Promise<JsonData>;
}
async function chain(hops: readonly object[], more: object = {}): Promise<Chain> {
  const body = { name: `chain ${made}`, payload: 'tcp', hops, target: { endpoint: '192.0.2.9:9' }, ...more };
  const { id } = await rest.data('POST', '/api/l4-chains', { body });
  const url = `/api/l4-chains/${id}`;
  return {
    id,
    get: () => rest.data('GET', url),
    deploy: () => rest.data('POST', `${url}/deploy`),
    put: (changes) => rest.data('PUT', url, { body: changes }),
  };
}

const report = (on: Site, listeners: readonly RuntimeListener[], links: readonly LinkSample[] = []): Promise<void> =>
  rest.report(on.id, { runtime_listeners: listeners, link_metrics: links });
/** The agent answers the next push. Resolves when the node shows it. */
async function takeNext(on: Site, agent: ConnectedAgent, answer: 'applied' | 'rejected' = 'applied'): Promise<void> {
  const push = await agent.receive();
  await (answer === 'applied' ? agent.apply(push) : agent.reject(push));
  await eventually(async () => (await view(on)).apply.state).toBe(answer);
}

describe('the listeners of a node', () => {
  test('are null before a report, then those of what is deployed beside those that are reported as running', async () => {
    const edge = await node('edge');
    expect((await view(edge)).listeners).toBeNull();
    const shown = await chain([hop(edge, 443)]);
    await chain([hop(edge, 444)], { name: `draft ${made}` });
    await (await chain([hop(edge, 445, { outer: 'udp' })], { name: `udp ${made}`, payload: 'udp' })).deploy();
    await (await chain([hop(edge, 446, { listen_addr: '2001:db8::1' })], { name: `v6 ${made}` })).deploy();
    await shown.deploy();
    await report(edge, [
      listener(443),
      listener(444),
      listener(445, 'failed', { transport: 'udp' }),
      // Another notation of the address that is intended.
      listener(446, 'running', { listen_addr: '2001:0db8:0::1' }),
    ]);
    const listeners = {
      intended: 3,
      running: 2,
      failed: [{ transport: 'udp', listen_addr: '0.0.0.0', listen_port: 445, state: 'failed' }],
    };
    expect((await view(edge)).listeners).toEqual(listeners);
    const { items } = await rest.data('GET', `/api/nodes?q=${encodeURIComponent(edge.name)}`);
    expect(items.map((one: JsonData) => one.listeners)).toEqual([listeners]);
    expect((await rest.data('PUT', `/api/nodes/${edge.id}`, { body: { labels: { a: 'b' } } })).listeners).toEqual(
      listeners,
    );
    const lacking = async (): Promise<string[]> => {
      const found = await rest.data('GET', `/api/nodes?listeners=missing&q=${encodeURIComponent(edge.name)}`);
      return found.items.map((one: JsonData) => one.id);
    };
    expect(await lacking()).toEqual([edge.id]);
    const wildcard = { listen_addr: '0.0.0.0' };
    await report(edge, [
      listener(443, 'running', wildcard),
      listener(445, 'running', { ...wildcard, transport: 'udp' }),
      listener(446, 'running', { listen_addr: '2001:db8::1' }),
    ]);
    expect(await lacking()).toEqual([]);

    await report(edge, []);
    expect((await view(edge)).listeners).toMatchObject({
      intended: 3,
      running: 0,
      failed: [
        { transport: 'tcp', listen_port: 443, state: 'missing' },
        { transport: 'tcp', listen_port: 446, state: 'missing' },
        { transport: 'udp', listen_port: 445, state: 'missing' },
      ],
    });
  });

  test('that do not run are told up to twenty, by port; the count is that of all', async () => {
    const edge = await node('edge');
    const hops = [hop(edge, 900)];
    for (let port = 930; port > 900; port -= 1) {
      const body = {
        name: `r ${made} ${port}`,
        host: `h${port}.example`,
        hops: [{ node_id: edge.id, listen_port: port }],
      };
      await rest.data('POST', '/api/routes', { body: { ...body, backend: '192.0.2.8:80' } });
    }
    await (await chain(hops)).deploy();
    await report(edge, [listener(910)]);
    const { intended, running, failed } = (await view(edge)).listeners;
    expect([intended, running]).toEqual([31, 1]);
    const ports = failed.map((one: JsonData) => one.listen_port);
    expect(ports).toEqual([
      ...Array.from({ length: 10 }, (_, index) => 900 + index),
      ...Array.from({ length: 10 }, (_, index) => 911 + index),
    ]);
  });

  test('stay as they were last reported once the node is offline', async () => {
    const edge = await node('edge');
    await (await chain([hop(edge, 443)])).deploy();
    const agent = await rest.connect(edge.id);
    await report(edge, [listener(443)]);
    await agent.disconnect();
    const { nodes } = await rest.data('GET', `/api/nodes/ports/runtime?node_id=${edge.id}`);
    expect(nodes).toMatchObject([{ status: 'offline', stale: true, listeners: [{ state: 'running' }] }]);
    const { items } = await rest.data('GET', `/api/nodes/ports?node_id=${edge.id}`);
    expect(items).toMatchObject([{ runtimeState: 'running', runtimeStale: true }]);
    expect(await view(edge)).toMatchObject({ status: 'offline', listeners: { intended: 1, running: 1, failed: [] } });
  });
});

describe('a chain', () => {
  test('shows the state of each hop, and of its listeners on all nodes, beside the hops as they were sent', async () => {
    const [edge, relay] = [await node('edge'), await node('relay')];
    const shown = await chain([hop(edge, 443), hop(relay, 8443)]);
    const hopOf = (on: Site, more: object): object => ({ node_id: on.id, node_name: on.name, ...more });
    const silent = { status: 'pending', state: null, stale: true, reported_at: null };
    const place = (listen_port: number, deployed: boolean) => ({ listen_addr: '0.0.0.0', listen_port, deployed });
    expect(await shown.get()).toMatchObject({
      hop_status: [hopOf(edge, silent), hopOf(relay, silent)],
      listeners: null,
      health: { state: 'unknown', reasons: ['the chain was never deployed'] },
    });
    await rest.connect(edge.id);
    await report(edge, [listener(443), listener(8443)]);
    // The report does not count for this chain, which is not deployed.
    expect((await shown.get()).hop_status[0]).toEqual(
      hopOf(edge, {
        ...place(443, false),
        status: 'online',
        state: null,
        stale: false,
        reported_at: expect.any(String),
      }),
    );
    const { chain: deployed, deployment } = await shown.deploy();
    expect(deployed.hop_status).toEqual([
      hopOf(edge, {
        ...place(443, true),
        status: 'online',
        state: 'running',
        stale: false,
        reported_at: expect.any(String),
      }),
      hopOf(relay, { ...place(8443, true), ...silent }),
    ]);
    // Nobody has reported that the other one does not run.
    expect(deployed.listeners).toEqual({ intended: 2, running: 1, failed: [] });
    expect(deployment.nodes.map((one: JsonData) => one.listeners)).toEqual([
      { intended: 1, running: 1, failed: [] },
      null,
    ]);

    await report(relay, [listener(8443, 'unsupported')]);
    expect(await shown.get()).toMatchObject({
      hops: [hop(edge, 443), hop(relay, 8443)],
      hop_status: [{ state: 'running' }, { state: 'unsupported' }],
      listeners: { intended: 2, running: 1, failed: [{ listen_port: 8443, state: 'unsupported' }] },
    });
    const { items } = await rest.data('GET', `/api/l4-chains/${shown.id}/deployments`);
    expect(items[0].nodes[1].listeners).toEqual({
      intended: 1,
      running: 0,
      failed: [{ transport: 'tcp', listen_addr: '0.0.0.0', listen_port: 8443, state: 'unsupported' }],
    });
  });

  test('whose hops were moved shows the deployed ones with their addresses, and behind them those of the draft', async () => {
    const [edge, relay, other] = [await node('edge'), await node('relay'), await node('other')];
    const shown = await chain([hop(edge, 443), hop(relay, 443)]);
    await shown.deploy();
    await report(edge, [listener(443)]);
    await report(relay, [listener(443)]);
    await report(other, [listener(443)]);
    const moved = await shown.put({ hops: [hop(other, 443), hop(edge, 444)] });
    expect(moved).toMatchObject({
      status: 'modified',
      hop_status: [
        { node_id: edge.id, listen_port: 443, deployed: true, state: 'running' },
        { node_id: relay.id, listen_port: 443, deployed: true, state: 'running' },
        { node_id: other.id, listen_port: 443, deployed: false, state: null },
        { node_id: edge.id, listen_port: 444, deployed: false, state: null },
      ],
      listeners: { intended: 2, running: 2 },
    });
    const { deployment } = await shown.deploy();
    const listeners = new Map(deployment.nodes.map((one: JsonData) => [one.node_id, one.listeners]));
    expect(listeners.get(relay.id)).toEqual({ intended: 0, running: 0, failed: [] });
    expect(listeners.get(edge.id)).toMatchObject({ intended: 1, running: 0, failed: [{ listen_port: 444 }] });
  });

  test('that is disabled has no listeners, and is unknown', async () => {
    const edge = await node('edge');
    const shown = await chain([hop(edge, 443)]);
    await shown.deploy();
    await report(edge, [listener(443)]);
    expect(await shown.put({ enabled: false })).toMatchObject({
      hop_status: [{ state: null }],
      listeners: null,
      health: { state: 'unknown', reasons: ['the chain is disabled'] },
    });
  });
});

describe('the health of a chain', () => {
  interface Running {
    readonly edge: Site;
    readonly relay: Site;
    readonly agents: readonly [ConnectedAgent, ConnectedAgent];
    readonly shown: Chain;
  }
  const running = [listener(443)];
  /** A chain over two nodes that runs. */
  async function running2(upstreamId?: string): Promise<Running> {
    const more = upstreamId === undefined ? {} : { target: { upstream_id: upstreamId } };
    const [edge, relay] = [await node('edge'), await node('relay')];
    const agents = [await rest.connect(edge.id), await rest.connect(relay.id)] as const;
    const shown = await chain([hop(edge, 443), hop(relay, 443)], more);
    await shown.deploy();
    await takeNext(edge, agents[0]);
    await takeNext(relay, agents[1]);
    for (const on of [edge, relay]) await report(on, running);
    if (upstreamId !== undefined) await rest.reportUpstreams(relay.id, { [upstreamId]: true });
    expect((await shown.get()).health).toEqual({ state: 'ok', reasons: [] });
    return { edge, relay, agents, shown };
  }
  const stateOf = async ({ shown }: Running): Promise<string> => (await shown.get()).health.state;

  test('is degraded when either end of a link reports that it loses more than a fifth', async () => {
    const site = await running2();
    const sample = (loss_ratio: number, more: Partial<LinkSample>): LinkSample =>
      linkOfChain(site.shown.id, { loss_ratio, ...more });
    const reasons = [`the link from "${site.edge.name}" to "${site.relay.name}" loses 34 %`];
    await report(site.edge, running, [sample(0.34, { peer_endpoint: 'relay.example:443' })]);
    expect((await site.shown.get()).health).toEqual({ state: 'degraded', reasons });
    await report(site.edge, running, [
      sample(0.2, { peer_endpoint: 'relay.example:443' }),
      // One is of no link between two nodes, the other of another chain.
      sample(0.9, { peer_endpoint: '192.0.2.9:9' }),
      sample(0.9, { peer_endpoint: 'relay.example:443', resource_id: 'another' }),
    ]);
    expect(await stateOf(site)).toBe('ok');
    await report(site.relay, running, [sample(0.34, { peer_node_id: site.edge.id })]);
    expect((await site.shown.get()).health).toEqual({ state: 'degraded', reasons });
  });

  test('says nothing by a heartbeat from before the apply, wherever a listener is shown', async () => {
    const edge = await node('edge');
    const agent = await rest.connect(edge.id);
    const shown = await chain([hop(edge, 443)]);
    const waiting = rest.data('POST', `/api/l4-chains/${shown.id}/deploy?wait=applied`);
    await agent.apply(await agent.receive());
    const { chain: deployed, deployment } = await waiting;
    expect(deployment.nodes).toMatchObject([{ state: 'applied', listeners: null }]);
    expect(deployed).toMatchObject({
      hop_status: [{ state: null, stale: false }],
      listeners: null,
      health: { state: 'unknown', reasons: [`no heartbeat of node "${edge.name}" tells of tcp 0.0.0.0:443 yet`] },
    });
    expect((await view(edge)).listeners).toBeNull();
    const ports = async (): Promise<JsonData> =>
      (await rest.data('GET', `/api/nodes/ports?node_id=${edge.id}`)).items[0].runtimeState;
    expect(await ports()).toBeNull();
    await report(edge, []);
    expect((await shown.get()).health.state).toBe('down');
    expect([await ports(), (await shown.get()).hop_status[0].state]).toEqual(['missing', 'missing']);
    // An apply of something else makes the last report too old again, although its listener still runs.
    await report(edge, running);
    await rest.data('POST', `/api/nodes/${edge.id}/config`);
    await takeNext(edge, agent);
    expect((await shown.get()).hop_status[0].state).toBeNull();
    await report(edge, running);
    expect(await shown.get()).toMatchObject({ hop_status: [{ state: 'running' }], health: { state: 'ok' } });
  });

  test('is down while the route of a hop has a state of its own, whatever its listener does', async () => {
    const [{ id: keys }, edge] = [
      await rest.data('POST', '/api/credentials', { body: { name: `keys ${made}`, key_type: 'x25519' } }),
      await node('edge'),
    ];
    const hidden = async (name: string): Promise<Chain> => {
      const body = realityOver(keys, `${name} ${made}`, [`${name}.example`]);
      const { id: credential_id } = await rest.data('POST', '/api/credentials', { body });
      return chain([hop(edge, 443, { security: 'reality', credential_id })], { name: `${name} ${made}` });
    };
    const [dead, alive] = [await hidden('dead'), await hidden('alive')];
    await rest.connect(edge.id);
    await dead.deploy();
    await alive.deploy();
    const route = (name: string, state: string | null) => ({
      service: name,
      payload: 'tcp',
      outer: 'tcp',
      security: 'reality',
      match_kind: 'reality',
      match_value: `${name}.example`,
      next_hop: '192.0.2.9:9',
      state,
    });
    await report(edge, [
      listener(443, 'running', { routes: [route('dead', 'target_unreachable'), route('alive', null)] }),
    ]);
    const unreachable = `node "${edge.name}" cannot reach the REALITY target of tcp 0.0.0.0:443 (target_unreachable)`;
    const shown = await dead.get();
    expect(shown).toMatchObject({ hop_status: [{ state: 'target_unreachable' }], health: { state: 'down' } });
    expect(shown.health.reasons[0]).toBe(unreachable);
    expect((await alive.get()).hop_status).toMatchObject([{ state: 'running' }]);
    expect((await alive.get()).health.reasons).not.toContain(unreachable);
    const { nodes } = await rest.data('GET', `/api/nodes/ports/runtime?node_id=${edge.id}`);
    expect(nodes[0].listeners[0]).toMatchObject({
      state: 'running',
      routes: [{ state: 'target_unreachable' }, { state: null }],
    });
    await report(edge, [listener(443, 'running', { routes: [route('dead', null), route('alive', null)] })]);
    expect((await dead.get()).health.reasons).not.toContain(unreachable);
  });

  test('is down while its upstream is unhealthy, and unknown until its agent has named it', async () => {
    const create = { name: `web ${made}`, endpoint: 'web.example:443' };
    const { id } = await rest.data('POST', '/api/l4-upstreams', { body: create });
    const upstream = (): Promise<JsonData> => rest.data('GET', `/api/l4-upstreams/${id}`);
    expect(await upstream()).toMatchObject({ health: 'unknown', in_use_by: [], in_use_by_total: 0 });
    const site = await running2(id);
    expect(await upstream()).toMatchObject({
      health: 'healthy',
      in_use_by: [{ type: 'l4_chain', id: site.shown.id, name: `chain ${made}` }],
      in_use_by_total: 1,
    });
    await rest.reportUpstreams(site.relay.id, { [id]: false });
    expect((await site.shown.get()).health).toEqual({
      state: 'down',
      reasons: [`upstream "web ${made}" is unhealthy, as "${site.relay.name}" reports`],
    });
    const found = async (health: string): Promise<boolean> => {
      const { items } = await rest.data(
        'GET',
        `/api/l4-upstreams?q=${encodeURIComponent(create.name)}&health=${health}`,
      );
      return items.some((one: JsonData) => one.id === id && one.health === health);
    };
    expect([await found('unhealthy'), await found('healthy'), await found('unknown')]).toEqual([true, false, false]);
    // Nobody has reported on the new endpoint yet.
    await rest.data('PUT', `/api/l4-upstreams/${id}`, { body: { endpoint: 'other.example:443' } });
    await takeNext(site.relay, site.agents[1]);
    await report(site.relay, running);
    expect((await site.shown.get()).health).toEqual({
      state: 'unknown',
      reasons: [`node "${site.relay.name}" has not told of upstream "web ${made}" yet`],
    });
    expect((await upstream()).health).toBe('unknown');
    await rest.reportUpstreams(site.relay.id, { [id]: true });
    expect(await stateOf(site)).toBe('ok');
    // What an agent reported before it went away no longer counts.
    await site.agents[1].disconnect();
    expect((await upstream()).health).toBe('unknown');
  });
});

describe('the list of chains', () => {
  test('is filtered by status and by health, with sort, q and pages, and shows what each chain was chosen for', async () => {
    const edge = await node('edge');
    const agent = await rest.connect(edge.id);
    const names = async (query: string): Promise<string[]> =>
      (await rest.data('GET', `/api/l4-chains?q=listed&${query}`)).items.map((one: JsonData) => one.name);
    const add = (name: string, port: number): Promise<Chain> => chain([hop(edge, port)], { name: `listed ${name}` });
    await add('draft', 1);
    const well = await add('well', 2);
    const failed = await add('failed', 3);
    const changed = await add('changed', 4);
    const off = await add('off', 5);
    for (const one of [well, failed, changed, off]) await one.deploy();
    await changed.put({ hops: [hop(edge, 6)] });
    await off.put({ enabled: false });
    await rest.data('POST', `/api/nodes/${edge.id}/config`);
    const { generation } = await view(edge);
    let push = await agent.receive();
    while (push.generation < generation) push = await agent.receive();
    await agent.apply(push);
    await eventually(async () => (await view(edge)).apply.state).toBe('applied');
    await report(edge, [listener(2), listener(3, 'failed'), listener(4)]);

    expect(await names('status=draft')).toEqual(['listed draft']);
    expect(await names('status=deployed')).toEqual(['listed failed', 'listed well']);
    expect(await names('status=modified')).toEqual(['listed changed']);
    expect(await names('status=disabled')).toEqual(['listed off']);
    expect(await names('health=ok')).toEqual(['listed changed', 'listed well']);
    expect(await names('health=down')).toEqual(['listed failed']);
    expect(await names('health=degraded')).toEqual([]);
    expect(await names('health=unknown')).toEqual(['listed draft', 'listed off']);
    expect(await names('health=ok&status=deployed')).toEqual(['listed well']);
    expect(await names('health=ok&sort=-name')).toEqual(['listed well', 'listed changed']);
    const page = await rest.data('GET', '/api/l4-chains?q=listed&health=ok&page=2&page_size=1');
    expect(page).toMatchObject({
      total: 2,
      page: 2,
      page_size: 1,
      items: [
        { name: 'listed well', health: { state: 'ok' }, hop_status: [{ state: 'running' }], listeners: { running: 1 } },
      ],
    });
    expect(page.items[0]).toEqual(await well.get());
    for (const query of ['health=fine', 'health=', 'status=live', 'health=ok&health=down'])
      expect((await rest.call('GET', `/api/l4-chains?${query}`)).statusCode).toBe(400);
  });
});
