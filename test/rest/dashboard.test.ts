/** Every figure of the dashboard against a fleet with known content (`docs/contract/rest.md#dashboard`). */
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import { keepRecent } from '../../src/feed/recent.js';
import type { CollectionSpec, Fields, ReadStore } from '../../src/storage/read-store.js';
import { eventually } from '../support/eventually.js';
import { createManualClock } from '../support/manual-clock.js';
import { createTlsCert, rotatedTo } from '../support/fleet.js';
import { runningListener as listener } from '../support/reported-tables.js';
import { realityOver, startRest, type JsonData, type RestFixture } from '../support/rest-fixture.js';

const stats = (rest: RestFixture): Promise<JsonData> => rest.data('GET', '/api/dashboard/stats');

describe('of a fleet with known content', () => {
  /** Rates are of minutes, which a busy machine may need for less. */
  const clock = createManualClock();
  let rest: RestFixture;
  const ids: Record<string, string> = {};
  let asked = 0;
  /** A read store whose reads are counted. */
  const counted = (readStore: ReadStore): ReadStore => ({
    ...readStore,
    async collection<F extends Fields>(spec: CollectionSpec) {
      const { get, getMany, list, find, count, ...writes } = await readStore.collection<F>(spec);
      const noted =
        <A extends unknown[], R>(read: (...given: A) => R) =>
        (...given: A): R => {
          asked += 1;
          return read(...given);
        };
      const reads = { get: noted(get), getMany: noted(getMany), list: noted(list), find: noted(find) };
      return { ...writes, ...reads, count: noted(count) };
    },
  });
  const post = async (url: string, body?: object): Promise<JsonData> => {
    const made = await rest.data('POST', url, body && { body });
    ids[made.name] = made.id;
    return made;
  };
  const hop = (node: string, listen_port: number, more = {}) => ({
    node_id: ids[node],
    listen_port,
    outer: 'tcp',
    security: 'raw',
    ...more,
  });
  const chain = (name: string, hops: object[], more: object = {}) =>
    post('/api/l4-chains', { name, payload: 'tcp', hops, target: { endpoint: '192.0.2.9:9' }, ...more });
  const deploy = (name: string) => rest.data('POST', `/api/l4-chains/${ids[name]}/deploy`);
  /** An agent with a session, and the newest snapshot of its node. */
  const connected = async (node: string) => {
    const agent = await rest.connect(ids[node] ?? '');
    const [push] = await Promise.all([agent.receive(), rest.data('POST', `/api/nodes/${ids[node]}/config`)]);
    return { agent, push };
  };
  const put = (path: string, body: object) => rest.data('PUT', path, { body });

  beforeAll(async () => {
    rest = await startRest({ before: counted }, clock);
    for (const name of ['pending', 'online', 'rejecting', 'gone']) {
      await post('/api/nodes', { name, address: `${name}.example` });
    }
    await post('/api/l4-upstreams', { name: 'web', endpoint: 'web.example:443' });
    await post('/api/l4-upstreams', { name: 'off', endpoint: 'off.example:443' });
    await put(`/api/l4-upstreams/${ids['off']}`, { enabled: false });

    await chain('draft', [hop('online', 79)]);
    await chain('deployed', [hop('online', 80), hop('pending', 80)]);
    await chain('failed', [hop('online', 81)]);
    await chain('modified', [hop('online', 82)]);
    await chain('disabled', [hop('online', 84)]);
    // Two on one listener.
    await chain('left', [hop('online', 85, { server_names: ['left.example'] })]);
    await chain('right', [hop('online', 85, { server_names: ['right.example'] })]);
    for (const name of ['deployed', 'failed', 'modified', 'disabled', 'left', 'right']) await deploy(name);
    await put(`/api/l4-chains/${ids['modified']}`, { hops: [hop('online', 83)] });
    await put(`/api/l4-chains/${ids['disabled']}`, { enabled: false });

    const route = { host: 'a.example', backend: '192.0.2.8:80' };
    await post('/api/routes', { name: 'route', hops: [{ node_id: ids['gone'], listen_port: 90 }], ...route });
    await post('/api/routes', {
      name: 'r off',
      hops: [{ node_id: ids['gone'], listen_port: 91 }],
      ...route,
      enabled: false,
    });

    await post('/api/credentials', { name: 'x', key_type: 'x25519' });
    await post('/api/credentials', realityOver(ids['x'] ?? '', 'identity', ['r.example']));
    const self_signed = (days: number) => ({ self_signed: { common_name: 'c.example', days } });
    await post('/api/credentials', { name: 'soon', key_type: 'tls_cert', ...self_signed(20) });
    await post('/api/credentials', { name: 'late', key_type: 'tls_cert', ...self_signed(300) });
    await rest.gateway.run(createTlsCert('ended', rotatedTo('ended', { not_after: '2020-01-01T00:00:00.000Z' })));

    const members = ['rejecting', 'online'].map((node, index) => ({
      node_id: ids[node],
      interface_name: `tun${index}`,
      addresses: [`10.9.0.${index + 1}/24`],
      routes: [],
    }));
    const tunnel = (listen_port: number) => ({
      listener_node_id: ids['rejecting'],
      listen_addr: '::',
      listen_port,
      connector_node_id: ids['online'],
    });
    const network = { credential_id: ids['identity'], server_name: 'r.example' };
    await post('/api/l3-networks', { name: 'net', members, tunnels: [tunnel(443)], ...network });
    await post('/api/l3-networks', {
      name: 'n off',
      members: members.map((member, index) => ({
        ...member,
        interface_name: `off${index}`,
        addresses: [`10.8.0.${index + 1}/24`],
      })),
      tunnels: [tunnel(444)],
      ...network,
      enabled: false,
    });

    const online = await connected('online');
    await online.agent.apply(online.push);
    const rejecting = await connected('rejecting');
    await rejecting.agent.reject(rejecting.push);
    const gone = await connected('gone');
    await gone.agent.apply(gone.push);
    const traffic = { bytes_in: 10, bytes_out: 1, active_sessions: 2, total_sessions: 5, error_sessions: 1 };
    await rest.report(ids['gone'] ?? '', { runtime_listeners: [listener(90, traffic), listener(99)] });
    await gone.agent.disconnect();
    await rest.report(ids['online'] ?? '', {
      runtime_listeners: [
        listener(80, traffic),
        listener(81, { state: 'failed' }),
        // One of the deployed definition, and one of the draft.
        listener(82, { bytes_in: 1000 }),
        listener(83, { active_sessions: 7 }),
        listener(84),
        listener(85),
        listener(80, { transport: 'udp' }),
      ],
    });
    await rest.report(ids['rejecting'] ?? '', {
      runtime_listeners: [listener(443, { transport: 'udp', listen_addr: '0:0:0:0:0:0:0:0' })],
    });
  });
  afterEach(() => vi.restoreAllMocks());
  afterAll(() => rest.close());

  test('every figure is what it should be', async () => {
    await rest.deps.projections.reached(await rest.position(), 20_000);
    const followed = (): number => rest.deps.projections.status().position;
    const followedBefore = followed();
    const { control, recent_audit, generated_at, matters, ...counts } = await stats(rest);
    expect(counts).toEqual({
      nodes: { total: 4, online: 2, offline: 1, pending: 1, converged: 2, rejected: 1, held: 0 },
      // One has a hop on a node that never connected, one a listener that failed.
      l4_chains: {
        total: 7,
        enabled: 6,
        deployed: 4,
        modified: 1,
        health: { ok: 3, degraded: 0, down: 1, unknown: 1 },
      },
      l4_upstreams: { total: 2, enabled: 1, healthy: 0, unhealthy: 0, unknown: 1 },
      routes: { total: 2, enabled: 1 },
      l3_networks: { total: 2, enabled: 1 },
      credentials: { total: 5, expiring_30d: 1, expired: 1 },
      // online: 80, 81, 82, 85; pending: 80; gone: 90; rejecting: udp 443.
      listeners: { intended: 7, running: 4, missing: 3, unexpected: 3 },
      traffic: {
        bytes_in: 1020,
        bytes_out: 2,
        active_sessions: 9,
        total_sessions: 10,
        error_sessions: 2,
        // All of it since the first heartbeats, which came a moment ago.
        last_5m: { bytes_in: 1020, bytes_out: 2, total_sessions: 10, error_sessions: 2 },
      },
    });
    expect(matters.map(({ severity, kind, cause, sentence }: JsonData) => [severity, kind, cause, sentence])).toEqual([
      [
        'down',
        'chain_down',
        'listener_missing',
        'Chain "failed" is down because listener tcp 0.0.0.0:81 of node "online" does not run',
      ],
      ['degraded', 'node_offline', null, 'Node "gone" is offline'],
      ['degraded', 'node_rejected', null, 'Node "rejecting" has rejected the newest configuration'],
      ['soon', 'chain_modified', null, 'Chain "modified" was edited and not deployed since'],
      ['soon', 'unexpected_listener', null, 'Node "online": tcp 0.0.0.0:83 is not deployed, and 2 more'],
    ]);
    expect(control).toEqual({
      sessions: 2,
      // One at the beginning of each session, and the three reports.
      heartbeats_per_minute: 6,
      last_event_position: expect.any(Number),
    });
    // Facts of nodes' statuses, which the service writes by itself, may move it while this reads.
    expect(followedBefore).toBeGreaterThanOrEqual(await rest.position());
    expect(control.last_event_position).toBeGreaterThanOrEqual(followedBefore);
    expect(control.last_event_position).toBeLessThanOrEqual(followed());
    expect(generated_at).toBe(new Date(clock.now()).toISOString());
    expect(recent_audit).toEqual((await rest.data('GET', '/api/audit?page_size=10')).items);
  });

  test('the newest entries are those of commands: sign-ins are left out', async () => {
    const { recent_audit: before } = await stats(rest);
    await rest.call('POST', '/api/auth/login', { role: 'nobody', body: { username: 'admin', password: 'wrong' } });
    const newest = async (): Promise<string> => (await rest.data('GET', '/api/audit?page_size=1')).items[0].action;
    await eventually(newest).toBe('session.sign_in_refused');
    expect((await stats(rest)).recent_audit).toEqual(before);
  });

  test('asks no store, and shows entries as the audit does, by role, also when they began to be kept only now', async () => {
    const entry = async () => (await rest.data('GET', '/api/audit?page_size=1')).items[0].id as string;
    const revert = (id: string) => rest.data('POST', `/api/audit/${id}/revert`);
    await put(`/api/l4-upstreams/${ids['off']}`, { endpoint: 'on.example:443' });
    const edit = await entry();
    await revert(edit);
    await revert(await entry());
    await rest.data('POST', '/api/webhooks', { body: { name: 'hook', url: 'https://hooks.example/', enabled: false } });
    await revert(edit);
    const user = { username: 'ada', password: 'correct horse battery', role: 'viewer' };
    await rest.data('POST', '/api/auth/users', { body: user });
    const { id: spare } = await post('/api/nodes', { name: 'spare' });
    await rest.data('DELETE', `/api/nodes/${spare}`);
    const later = await keepRecent({ ...rest.deps, readStoreAway: () => false });
    for (const role of ['admin', 'viewer'] as const) {
      const { items } = await rest.data('GET', '/api/audit?page_size=20', { role });
      const newest = items.filter(({ action }: JsonData) => !action.startsWith('session.')).slice(0, 10);
      expect(newest.filter(({ reverted_by }: JsonData) => reverted_by !== null)).not.toEqual([]);
      // Something else may ask beside it, but not each time.
      await eventually(async () => {
        const before = asked;
        expect((await rest.data('GET', '/api/dashboard/stats', { role })).recent_audit).toEqual(newest);
        return asked - before;
      }).toBe(0);
      // The answer adds `confirm`.
      const stored = newest.map(({ confirm: _, ...entry }: JsonData) => entry);
      expect(await later.of({ admin: role === 'admin' })).toEqual(stored);
    }
  });

  test('sums and matters take a turn of the event loop each', async () => {
    const { backups, counts, fleet, recent } = rest.deps;
    const [sums, resources] = [await counts.now(), await fleet.resourceCounts()];
    vi.spyOn(recent, 'of').mockResolvedValue([]);
    vi.spyOn(fleet, 'resourceCounts').mockResolvedValue(resources);
    const order: string[] = [];
    vi.spyOn(counts, 'now').mockImplementation(async () => {
      setImmediate(() => order.push('a turn'));
      return sums;
    });
    vi.spyOn(backups, 'late').mockImplementation(() => void order.push('matters'));
    await stats(rest);
    expect(order).toEqual(['a turn', 'matters']);
  });

  test('a command shows at once, and what an agent tells soon', async () => {
    const before = await stats(rest);
    await post('/api/nodes', { name: 'late node' });
    await chain('one more', [hop('late node', 80)]);
    await deploy('one more');
    const after = await stats(rest);
    expect(after.nodes).toMatchObject({ total: before.nodes.total + 1, pending: before.nodes.pending + 1 });
    expect(after.l4_chains.deployed).toBe(before.l4_chains.deployed + 1);
    expect(after.listeners).toMatchObject({
      intended: before.listeners.intended + 1,
      missing: before.listeners.missing + 1,
    });
    const { agent, push } = await connected('late node');
    await agent.apply(push);
    await rest.report(ids['late node'] ?? '', { runtime_listeners: [listener(80)] });
    await eventually(async () => (await stats(rest)).listeners.running).toBe(before.listeners.running + 1);
    expect((await stats(rest)).nodes.converged).toBe(before.nodes.converged + 1);
    await agent.disconnect();
  });

  test('what is deleted counts no more, also beside a change of the settings', async () => {
    const counts = async () => {
      const { nodes, l4_chains, l4_upstreams, routes, listeners } = await stats(rest);
      return { nodes, l4_chains, l4_upstreams, routes, listeners };
    };
    const before = await counts();
    await post('/api/nodes', { name: 'short', address: 'short.example' });
    const { id: upstream_id } = await post('/api/l4-upstreams', { name: 'brief', endpoint: 'brief.example:443' });
    const { id } = await chain('passing', [hop('short', 80)], { target: { upstream_id } });
    await deploy('passing');
    const { health } = before.l4_chains;
    expect((await counts()).l4_chains.health).toEqual({ ...health, unknown: health.unknown + 1 });
    await rest.data('DELETE', `/api/l4-chains/${id}`);
    await rest.data('DELETE', `/api/l4-upstreams/${upstream_id}`);
    await Promise.all([
      rest.data('DELETE', `/api/nodes/${ids['short']}`),
      put('/api/settings/connectivity', { metrics_interval_secs: 61 }),
    ]);
    expect(await counts()).toEqual(before);
  });

  test('traffic never falls: a restarted agent counts from 0, and a listener is closed', async () => {
    await post('/api/nodes', { name: 'restarting' });
    const id = ids['restarting'] ?? '';
    const carried = (port: number, bytes_in: number) => ({ ...listener(port), bytes_in });
    const before = await stats(rest);
    const traffic = async () => (await stats(rest)).traffic.bytes_in - before.traffic.bytes_in;
    await rest.report(id, { process_id: 'aa', runtime_listeners: [carried(80, 500), carried(81, 20)] });
    await eventually(traffic).toBe(520);
    await rest.report(id, { process_id: 'bb', runtime_listeners: [carried(80, 600)] });
    await eventually(traffic).toBe(1_120);
  });
});
