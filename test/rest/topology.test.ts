/** The fleet as a picture (`docs/contract/rest.md#topology`), over REST. `../domain/topology` tests what is drawn. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { linkOfChain, runningListener } from '../support/reported-tables.js';
import { startRest, type JsonData, type RestFixture } from '../support/rest-fixture.js';

let rest: RestFixture;
const ids: Record<string, string> = {};
const post = (path: string, body?: object): Promise<JsonData> => rest.data('POST', path, body && { body });
const topology = (query = ''): Promise<JsonData> => rest.data('GET', `/api/topology?${query}`, { role: 'viewer' });
const link = (chain: string, peer_node_id: string, rtt_ms: number) => linkOfChain(chain, { peer_node_id, rtt_ms });

/** Chains `long` over e1, u2 and u10, and `short` over e1 and u2; u10 is offline, and nobody has applied anything. */
beforeAll(async () => {
  rest = await startRest();
  const labels: Record<string, object> = { e1: { at: 'eu' }, u2: { at: 'us' }, u10: { at: 'us' }, lone: { at: '' } };
  for (const [name, of] of Object.entries(labels)) {
    ids[name] = (await post('/api/nodes', { name, address: `${name}.example`, labels: of })).id;
  }
  const chains: Record<string, readonly [port: number, ...nodes: string[]]> = {
    long: [443, 'e1', 'u2', 'u10'],
    short: [444, 'e1', 'u2'],
    draft: [445, 'lone', 'e1'],
  };
  for (const [name, [listen_port, ...nodes]] of Object.entries(chains)) {
    const hops = nodes.map((node) => ({ node_id: ids[node], listen_port, outer: 'tcp', security: 'raw' }));
    ids[name] = (await post('/api/l4-chains', { name, payload: 'tcp', hops, target: { endpoint: 'a.example:1' } })).id;
    if (name !== 'draft') await post(`/api/l4-chains/${ids[name]}/deploy`);
  }
  const { e1 = '', u2 = '', u10 = '', lone = '', long = '', short = '' } = ids;
  await (await rest.connect(u10)).disconnect();
  for (const id of [e1, u2, lone]) await rest.connect(id);
  // An agent may not know the node behind an endpoint; the far end of a link may measure it too.
  const runtime_listeners = [443, 444].map((port) => runningListener(port));
  await rest.report(e1, { runtime_listeners, link_metrics: [link(long, '', 9), link(short, u2, 12.5)] });
  await rest.report(u2, { runtime_listeners, link_metrics: [link(long, e1, 99), link(long, '', 3)] });
});
afterAll(() => rest.close());

test('groups are counted by status, and linked in the direction of traffic', async () => {
  const eu = { value: 'eu', nodes: 1, by_status: { online: 1, offline: 0, pending: 0 }, rejected: 0, chains_down: 1 };
  const us = { value: 'us', nodes: 2, by_status: { online: 1, offline: 1, pending: 0 }, rejected: 0, chains_down: 1 };
  const none = { value: null, nodes: 1, by_status: { online: 1, offline: 0, pending: 0 }, rejected: 0, chains_down: 0 };
  const between = { from: 'eu', to: 'us', chains: 2, state: 'down', rtt_ms: 12.5 };
  expect(await topology('group_by=at')).toEqual({ groups: [eu, us, none], links: [between] });
  expect(await topology('group_by=at&only=wrong')).toEqual({ groups: [eu, us], links: [between] });
  const all = { nodes: 4, by_status: { online: 3, offline: 1, pending: 0 }, rejected: 0, chains_down: 1 };
  expect(await topology('group_by=other')).toEqual({ groups: [{ value: null, ...all }], links: [] });
});

test('nodes come with their chains and links: all, those of a group with their neighbours, those without the label', async () => {
  const of = (name: string, group: string | null, status: string, total: number, down: number) => {
    return { id: ids[name], name, group, status, apply: 'none', chains: { total, down } };
  };
  const [e1, lone] = [of('e1', 'eu', 'online', 2, 1), of('lone', null, 'online', 0, 0)];
  const [u2, u10] = [of('u2', 'us', 'online', 2, 1), of('u10', 'us', 'offline', 1, 1)];
  const first = { from_node_id: ids['e1'], to_node_id: ids['u2'], chains: 2, state: 'down', rtt_ms: 12.5 };
  const second = { from_node_id: ids['u2'], to_node_id: ids['u10'], chains: 1, state: 'down', rtt_ms: 3 };
  const ungrouped = [e1, lone, u2, u10].map((node) => ({ ...node, group: null }));
  expect(await topology()).toEqual({ nodes: ungrouped, links: [first, second] });
  expect(await topology('group_by=at&group=us')).toEqual({ nodes: [e1, u2, u10], links: [first, second] });
  expect(await topology('group_by=at&group=eu')).toEqual({ nodes: [e1, u2], links: [first] });
  expect(await topology('group_by=at&group=')).toEqual({ nodes: [lone], links: [] });
  expect(await topology('group_by=at&group=nowhere')).toEqual({ nodes: [], links: [] });
});

test('a group without a label, another word for what is wrong and a key with a colon are refused by name', async () => {
  const refused = async (query: string) => {
    const answer = await rest.call('GET', `/api/topology?${query}`);
    return [answer.statusCode, answer.json().error];
  };
  expect(await refused('group=eu')).toEqual([400, 'invalid_request: group: expected together with group_by']);
  expect(await refused('only=good')).toEqual([400, expect.stringContaining('only: expected wrong')]);
  expect(await refused('group_by=a%3Ab')).toEqual([
    400,
    expect.stringContaining('group_by: expected a key of 1 to 63'),
  ]);
  const names = Array.from({ length: 1_001 }, (_, index) => ({ id: `${index}`, name: `${index}` }));
  const all = rest.deps.fleet.allNodes;
  Object.assign(rest.deps.fleet, { allNodes: () => names });
  expect(await refused('')).toEqual([400, expect.stringContaining('group_by: required for more than 1000 nodes')]);
  expect((await topology('group_by=at')).groups).toMatchObject([{ value: null, nodes: 1_001 }]);
  Object.assign(rest.deps.fleet, { allNodes: all });
});

test('the keys that one can group by are listed, those of most nodes first; an empty value groups nothing', async () => {
  await rest.data('PUT', `/api/nodes/${ids['lone']}`, { body: { labels: { at: '', rack: '7' } } });
  const labels = await rest.data('GET', '/api/nodes/labels', { role: 'viewer' });
  const items = [
    { key: 'at', nodes: 3 },
    { key: 'rack', nodes: 1 },
  ];
  expect(labels).toEqual({ items, nodes_total: 4 });
});
