/**
 * Agents that say what they can run, over their own protocol, and the warnings wherever something asks more of them
 * (`docs/contract/agent-protocol.md#configuration`, "Features"). Which rule needs what is in `test/domain/`.
 */
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { systemClock } from '../../src/kernel/clock.js';
import { createRawAgent, type RawAgent } from '../support/raw-agent.js';
import { realityOver, startRest, type JsonData, type RestFixture } from '../support/rest-fixture.js';

let rest: RestFixture;
/** `relay-1` runs RAW alone, `mute` does not say what it runs, `able` runs all that is asked of it. */
let [relay, mute, able] = ['', '', ''];
let reality: string;
const agents: RawAgent[] = [];
const post = (path: string, body?: object): Promise<JsonData> => rest.data('POST', path, body && { body });
const put = (path: string, body: object): Promise<JsonData> => rest.data('PUT', path, { body });

async function site(name: string, features: readonly string[]): Promise<string> {
  const { id, control_psk } = await post('/api/nodes', { name, address: `${name}.example` });
  const { hostname, port } = new URL(`tcp://${rest.agents}`);
  const agent = createRawAgent({ host: hostname, port: Number(port), clock: systemClock }, id, control_psk);
  agents.push(agent);
  await agent.connect({ agentVersion: 'reference-agent/0.2.0', features: [...features] });
  const version = async () => (await rest.data('GET', `/api/nodes/${id}`)).agent_version;
  await vi.waitFor(async () => expect(await version()).toBe('reference-agent/0.2.0'), { timeout: 20_000 });
  return id;
}

beforeAll(async () => {
  rest = await startRest();
  relay = await site('relay-1', ['tcp_raw', 'confirm', 'tcp_raw', 'a'.repeat(65)]);
  mute = await site('mute', ['confirm']);
  able = await site('able', ['tcp_raw', 'quic_reality', 'http', 'l3', 'multiplex']);
  const key = await post('/api/credentials', { name: 'key', key_type: 'x25519' });
  reality = (await post('/api/credentials', realityOver(key.id, 'masked', ['one.example']))).id;
}, 60_000);
afterAll(async () => {
  for (const agent of agents) agent.disconnect();
  await rest.close();
});

const lacks = (feature: string): string => `relay-1 runs reference-agent 0.2.0, which cannot run ${feature}`;
const target = { endpoint: 'web.example:443' };
const hopsOf = (...ids: readonly string[]) =>
  ids.map((node_id) => ({ node_id, listen_port: 443, outer: 'quic', security: 'reality', credential_id: reality }));
const matters = async () => {
  const { matters: told } = await rest.data('GET', '/api/dashboard/stats');
  return told.filter(({ kind }: JsonData) => kind === 'agent_cannot_run');
};

test('a node shows the features of its newest hello, sorted and once each', async () => {
  expect((await rest.data('GET', `/api/nodes/${relay}`)).features).toEqual(['confirm', 'tcp_raw']);
  expect((await rest.data('GET', `/api/nodes/${mute}`)).features).toEqual(['confirm']);
});

test('a chain is warned of when it is saved, planned and deployed; then its health and the dashboard say it', async () => {
  const chain = { name: 'front', payload: 'tcp', hops: hopsOf(able, relay, mute), target };
  const off = await post('/api/l4-chains', { ...chain, enabled: false });
  expect(off.warnings).toEqual([]);
  const url = `/api/l4-chains/${off.id}`;
  expect((await rest.data('GET', `${url}/plan`)).warnings).toEqual([]);
  expect((await put(url, { enabled: true })).warnings).toEqual([lacks('quic_reality')]);
  expect(await rest.data('GET', url)).not.toHaveProperty('warnings');
  expect((await rest.data('GET', `${url}/plan`)).warnings).toEqual([lacks('quic_reality')]);
  expect(await matters()).toEqual([]);
  const { chain: deployed, warnings } = await post(`${url}/deploy`);
  expect(warnings).toEqual([lacks('quic_reality')]);
  expect(deployed.health.reasons.at(-1)).toBe(lacks('quic_reality'));
  const reason = 'its agent, reference-agent 0.2.0, cannot run quic_reality';
  expect(await matters()).toEqual([
    {
      severity: 'soon',
      kind: 'agent_cannot_run',
      cause: null,
      count: 1,
      sentence: `Node "relay-1": ${reason}`,
      resources: [{ type: 'node', id: relay, name: 'relay-1', reason }],
      filter: null,
    },
  ]);
  // Warnings are about the draft, health is about what is deployed.
  expect((await put(url, { hops: hopsOf(able) })).warnings).toEqual([]);
  expect((await rest.data('GET', url)).health.reasons.at(-1)).toBe(lacks('quic_reality'));
  await post(`${url}/deploy`);
  expect((await rest.data('GET', url)).health.reasons).not.toContain(lacks('quic_reality'));
  expect(await matters()).toEqual([]);
});

test('a create that is repeated warns again', async () => {
  const body = { name: 'again', payload: 'tcp', hops: hopsOf(relay), target };
  const call = { body, headers: { 'idempotency-key': 'again' } };
  for (const _ of [1, 2]) {
    expect((await rest.data('POST', '/api/l4-chains', call)).warnings).toEqual([lacks('quic_reality')]);
  }
});

test('routes, networks and settings', async () => {
  const hops = [{ node_id: relay, listen_port: 80 }];
  const route = await post('/api/routes', { name: 'shop', host: 'shop.example', hops, backend: 'web.example:80' });
  expect(route.warnings).toEqual([lacks('http')]);
  expect((await put(`/api/routes/${route.id}`, { enabled: false })).warnings).toEqual([]);
  const members = [able, relay].map((node_id, at) => ({ node_id, addresses: [`10.0.0.${at + 1}/24`], routes: [] }));
  const tunnels = [{ listener_node_id: able, listen_addr: '0.0.0.0', listen_port: 4443, connector_node_id: relay }];
  const network = { name: 'net', credential_id: reality, server_name: 'one.example', members, tunnels };
  expect((await post('/api/l3-networks', network)).warnings).toEqual([lacks('l3')]);
  const settings = '/api/settings/connectivity';
  expect((await put(settings, { multiplex: true, multiplex_port: 7443 })).warnings).toEqual([lacks('multiplex')]);
  expect((await put(settings, { heartbeat_interval_secs: 11 })).warnings).toEqual([]);
  const off = { nodes: [{ node_id: relay, multiplex: false }] };
  expect((await put(settings, off)).warnings).toEqual([]);
  expect((await put(settings, { multiplex: false })).warnings).toEqual([]);
});

test('a plan of a document and its apply, which is the same when it is looked up again', async () => {
  const credential = 'masked';
  const hops = [{ node: 'relay-1', listen_port: 444, outer: 'quic', security: 'reality', credential }];
  const document = JSON.stringify({
    svc: 1,
    chains: { listed: { payload: 'tcp', hops, target, deploy: true } },
    routes: {
      other: { host: 'other.example', hops: [{ node: 'relay-1', listen_port: 81 }], backend: 'web.example:80' },
    },
  });
  const expected = [lacks('quic_reality'), lacks('http')].sort();
  const plan = await post('/api/fleet/plan', { document });
  expect(plan.obstacles).toEqual([]);
  expect([...plan.warnings].sort()).toEqual(expected);
  expect(plan).not.toHaveProperty('needs');
  const applied = await post('/api/fleet/apply', { document });
  expect([...applied.warnings].sort()).toEqual(expected);
  const found = await rest.data('GET', `/api/fleet/applies/${applied.apply_id}`);
  expect([...found.warnings].sort()).toEqual(expected);
  expect((await post('/api/fleet/plan', { document })).warnings).toEqual([]);
});
