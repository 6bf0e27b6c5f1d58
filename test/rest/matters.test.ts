/**
 * What needs somebody, as the dashboard tells it (`docs/contract/rest.md#dashboard`, `matters`): each way in which a fleet is not
 * well is named by its cause, and gone once it is mended.
 */
import { afterAll, beforeAll, beforeEach, expect, test, vi } from 'vitest';
import type { LateBackup } from '../../src/domain/matters/kinds.js';
import { createManualClock, type ManualClock } from '../support/manual-clock.js';
import { createTlsCert, rotatedTo } from '../support/fleet.js';
import { eventually } from '../support/eventually.js';
import { linkOfChain, runningListener } from '../support/reported-tables.js';
import { startRest, type ConnectedAgent, type JsonData, type RestFixture } from '../support/rest-fixture.js';

let rest: RestFixture;
let clock: ManualClock;
let edge: Site;
let relay: Site;
let chainId: string;
let upstreamId: string;

interface Site {
  readonly id: string;
  agent: ConnectedAgent;
}
const running = runningListener(443);
const post = (path: string, body?: object): Promise<JsonData> => rest.data('POST', path, body && { body });
const put = (path: string, body: object): Promise<JsonData> => rest.data('PUT', path, { body });

async function site(name: string): Promise<Site> {
  const { id } = await post('/api/nodes', { name, address: `${name}.example` });
  return { id, agent: await rest.connect(id) };
}

type Push = Awaited<ReturnType<ConnectedAgent['receive']>>;

/** The push of a refresh, whose answer waits for it. */
async function refreshed(of: Site): Promise<Push> {
  const [push] = await Promise.all([of.agent.receive(), post(`/api/nodes/${of.id}/config`)]);
  return push;
}

/** The agent takes all that is pushed, and reports that its listener runs. */
async function takeAll(of: Site): Promise<void> {
  const { generation } = await rest.data('GET', `/api/nodes/${of.id}`);
  let push = await of.agent.receive();
  while (push.generation < generation) push = await of.agent.receive();
  await applied(of, push);
}

async function applied(of: Site, push: Push): Promise<void> {
  await of.agent.apply(push);
  await rest.report(of.id, { runtime_listeners: [running] });
  const state = async () => (await rest.data('GET', `/api/nodes/${of.id}`)).apply.state;
  await vi.waitFor(async () => expect(await state()).toBe('applied'), { timeout: 20_000 });
}

/** Past the time for which reports are shared. */
async function stats(role: 'admin' | 'viewer' = 'admin'): Promise<JsonData> {
  clock.advance(2_000);
  return rest.data('GET', '/api/dashboard/stats', { role });
}
const matters = async (): Promise<readonly string[][]> =>
  (await stats()).matters.map(({ severity, kind, cause }: JsonData) => [severity, kind, cause]);

/** A chain over two nodes that ends in an upstream, and all is well. */
beforeAll(async () => {
  clock = createManualClock();
  rest = await startRest({}, clock);
  [edge, relay] = [await site('edge'), await site('relay')];
  upstreamId = (await post('/api/l4-upstreams', { name: 'web', endpoint: 'web.example:443' })).id;
  const hops = [edge, relay].map(({ id }) => ({ node_id: id, listen_port: 443, outer: 'tcp', security: 'raw' }));
  const body = { name: 'front', payload: 'tcp', hops, target: { upstream_id: upstreamId } };
  chainId = (await post('/api/l4-chains', body)).id;
  await post(`/api/l4-chains/${chainId}/deploy`);
  for (const of of [edge, relay]) await takeAll(of);
  await rest.reportUpstreams(relay.id, { [upstreamId]: true });
}, 60_000);
beforeEach(async () => expect(await matters()).toEqual([]));
afterAll(() => rest.close());

const down = (cause: string): readonly string[][] => [['down', 'chain_down', cause]];

test('an upstream that is unhealthy', async () => {
  await rest.reportUpstreams(relay.id, { [upstreamId]: false });
  const { matters: told, l4_chains, l4_upstreams } = await stats();
  expect(told).toEqual([
    {
      severity: 'down',
      kind: 'chain_down',
      cause: 'upstream_unhealthy',
      count: 1,
      sentence: 'Chain "front" is down because upstream "web" is unhealthy',
      resources: [
        { type: 'l4_chain', id: chainId, name: 'front', reason: 'upstream "web" is unhealthy, as "relay" reports' },
      ],
      filter: `/api/l4-chains?health=down&upstream_id=${upstreamId}`,
    },
  ]);
  expect([l4_chains.health.down, l4_upstreams.unhealthy]).toEqual([1, 1]);
  expect((await rest.data('GET', told[0].filter)).items).toMatchObject([{ id: chainId }]);
  await rest.reportUpstreams(relay.id, { [upstreamId]: true });
});

test('an upstream that is disabled', async () => {
  await put(`/api/l4-upstreams/${upstreamId}`, { enabled: false });
  await takeAll(relay);
  expect(await matters()).toEqual(down('upstream_disabled'));
  await put(`/api/l4-upstreams/${upstreamId}`, { enabled: true });
  await takeAll(relay);
  await rest.reportUpstreams(relay.id, { [upstreamId]: true });
});

test('a node that is offline, and one that is offline and carries nothing', async () => {
  await relay.agent.disconnect();
  const { matters: told } = await stats();
  expect(told).toMatchObject([{ cause: 'node_offline', filter: `/api/l4-chains?health=down&node_id=${relay.id}` }]);
  relay.agent = await rest.connect(relay.id);
  await rest.report(relay.id, { runtime_listeners: [running] });
  await rest.reportUpstreams(relay.id, { [upstreamId]: true });
  expect(await matters()).toEqual([]);
  const spare = await site('spare');
  await spare.agent.disconnect();
  const [matter, ...others] = (await stats()).matters;
  expect([matter.kind, others]).toEqual(['node_offline', []]);
  expect((await rest.data('GET', matter.filter)).items).toMatchObject([{ id: spare.id }]);
  await rest.data('DELETE', `/api/nodes/${spare.id}`);
});

test('a node that has rejected', async () => {
  await edge.agent.reject(await refreshed(edge));
  await eventually(matters).toEqual([['degraded', 'chain_degraded', 'node_rejected']]);
  await applied(edge, await refreshed(edge));
});

test('a node that has not applied yet', async () => {
  const push = await refreshed(edge);
  expect(await matters()).toEqual([['degraded', 'chain_degraded', 'apply_behind']]);
  await applied(edge, push);
});

test('a listener that does not run, and one that nothing has deployed', async () => {
  await rest.report(edge.id, { runtime_listeners: [{ ...running, state: 'failed' }] });
  expect(await matters()).toEqual(down('listener_missing'));
  await rest.report(edge.id, { runtime_listeners: [running, { ...running, listen_port: 99 }] });
  const { matters: told, listeners } = await stats();
  expect(told).toMatchObject([
    {
      severity: 'soon',
      kind: 'unexpected_listener',
      resources: [{ type: 'node', reason: 'tcp 0.0.0.0:99 is not deployed' }],
    },
  ]);
  expect(listeners).toEqual({ intended: 2, running: 2, missing: 0, unexpected: 1 });
  await rest.report(edge.id, { runtime_listeners: [running] });
});

test('a listener of a route, which is no chain', async () => {
  const route = {
    name: 'site',
    host: 'a.example',
    backend: '192.0.2.8:80',
    hops: [{ node_id: edge.id, listen_port: 80 }],
  };
  const { id } = await post('/api/routes', route);
  await takeAll(edge);
  const [matter, ...others] = (await stats()).matters;
  expect(others).toEqual([]);
  expect(matter).toMatchObject({
    kind: 'listener_missing',
    sentence: 'Node "edge": tcp 0.0.0.0:80 is missing',
    resources: [{ type: 'node', id: edge.id }],
  });
  expect((await rest.data('GET', matter.filter)).items).toMatchObject([{ id: edge.id }]);
  await rest.data('DELETE', `/api/routes/${id}`);
  await takeAll(edge);
});

test('a link that loses all, or too much', async () => {
  const lossy = (loss_ratio: number) => linkOfChain(chainId, { peer_node_id: relay.id, loss_ratio });
  await rest.report(edge.id, { runtime_listeners: [running], link_metrics: [lossy(1)] });
  expect(await matters()).toEqual(down('link_loss'));
  await rest.report(edge.id, { runtime_listeners: [running], link_metrics: [lossy(0.5)] });
  expect(await matters()).toEqual([['degraded', 'chain_degraded', 'link_loss']]);
  await rest.report(edge.id, { runtime_listeners: [running] });
});

test('an agent that tells nothing, after a minute', async () => {
  await edge.agent.disconnect();
  edge.agent = await rest.connect(edge.id, false);
  expect(await matters()).toEqual([]);
  clock.advance(60_000);
  expect(await matters()).toEqual([['degraded', 'chain_unknown', null]]);
  await rest.report(edge.id, { runtime_listeners: [running] });
  await rest.reportUpstreams(relay.id, { [upstreamId]: true });
});

test('a chain that was edited and not deployed is no fault', async () => {
  await put(`/api/l4-chains/${chainId}`, { description: 'as it was' });
  expect(await matters()).toEqual([]);
  const { target } = await rest.data('GET', `/api/l4-chains/${chainId}`);
  await put(`/api/l4-chains/${chainId}`, { target: { endpoint: '192.0.2.9:9' } });
  const [matter] = (await stats()).matters;
  expect(matter).toMatchObject({ severity: 'soon', kind: 'chain_modified', filter: '/api/l4-chains?status=modified' });
  await put(`/api/l4-chains/${chainId}`, { target });
});

test('a certificate that something uses, and that ends or has ended', async () => {
  const certificate = (not_after: number) => rotatedTo('certificate', { not_after: new Date(not_after).toISOString() });
  // Sooner than a token ends.
  const create = createTlsCert('certificate', certificate(clock.now() + 3_600_000));
  await rest.gateway.run(create);
  expect(await matters()).toEqual([]);
  const [{ id: credential_id }] = (await rest.data('GET', '/api/credentials?key_type=tls_cert')).items;
  const hops = [{ node_id: edge.id, listen_port: 8443, outer: 'tcp', security: 'tls', credential_id }];
  const body = { name: 'kept', payload: 'tcp', hops, target: { endpoint: '192.0.2.9:9' } };
  const { id } = await post('/api/l4-chains', body);
  const [matter] = (await stats()).matters;
  expect(matter).toMatchObject({
    severity: 'soon',
    kind: 'certificate_ending',
    resources: [{ type: 'credential', id: credential_id }],
  });
  expect((await rest.data('GET', matter.filter)).items).toMatchObject([{ id: credential_id }]);
  clock.advance(3_600_000);
  const [ended] = (await stats()).matters;
  expect(ended).toMatchObject({
    severity: 'down',
    kind: 'certificate_ended',
    sentence: 'Certificate "certificate" has ended and is in use',
  });
  await rest.data('DELETE', `/api/l4-chains/${id}`);
});

test('a webhook that has stopped, to admins alone', async () => {
  const { id } = await post('/api/webhooks', { name: 'hook', url: 'https://hooks.example/' });
  const { tries_since } = rest.deps.fleet.resources.webhook.get(id)!;
  await rest.gateway.run({ type: 'StopWebhook', id, tries_since, cursor: null, reason: 'the last try failed' });
  expect((await stats()).matters[0].resources).toMatchObject([{ name: 'hook', reason: 'the last try failed' }]);
  expect(await matters()).toEqual([['degraded', 'webhook_stopped', null]]);
  expect((await stats('viewer')).matters).toEqual([]);
  await rest.data('DELETE', `/api/webhooks/${id}`);
});

test('a backup that is late, to everybody', async () => {
  const late = vi.spyOn(rest.deps.backups, 'late');
  const told = async (backup: LateBackup): Promise<unknown> => {
    late.mockReturnValue(backup);
    const [{ sentence, ...matter }] = (await stats('viewer')).matters;
    expect(matter).toEqual({
      severity: 'soon',
      kind: 'backup_late',
      cause: null,
      count: 1,
      resources: [],
      filter: null,
    });
    return sentence;
  };
  const reason = 'no space is left in the folder of backups';
  expect(await told({ ageMs: 50 * 3_600_000, reason })).toBe(`The newest backup is 2 days old: ${reason}`);
  expect(await told({ ageMs: 2.5 * 3_600_000, reason: null })).toBe('The newest backup is 2 hours old');
  expect(await told({ ageMs: null, reason: null })).toBe('There is no recent backup');
  late.mockRestore();
});
