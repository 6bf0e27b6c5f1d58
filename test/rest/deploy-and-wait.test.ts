/** `docs/contract/rest.md`, L4 chains and Nodes: deploy, `?wait=applied`, deployments, plan, snapshot, PSK. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { startRest } from '../support/rest-client.js';
import type { RestUnderTest } from '../support/rest-client.js';

let rest: RestUnderTest;
let nodes: string[];
let url: string;
beforeEach(async () => {
  rest = await startRest();
  nodes = [];
  for (const name of ['a', 'b']) nodes.push((await rest.data('POST', '/api/nodes', { body: { name } })).id);
  const hops = nodes.map((node_id) => ({ node_id, listen_port: 80, outer: 'tcp', security: 'raw' }));
  const body = { name: 'c', payload: 'tcp', hops, target: { endpoint: 'a.example:80' } };
  url = `/api/l4-chains/${(await rest.data('POST', '/api/l4-chains', { body })).id}`;
});
afterEach(() => rest.app.close());

const states = (data: { deployment: { nodes: { state: string }[] } }) =>
  data.deployment.nodes.map((node) => node.state);

test('a deploy answers the chain and its deployment, without waiting for offline nodes', async () => {
  expect(await rest.data('GET', url)).toMatchObject({ status: 'draft', deployed_version: null, deployed_at: null });
  const data = await rest.data('POST', `${url}/deploy?wait=applied&timeout_ms=30000`);
  expect(data.chain).toMatchObject({
    status: 'deployed',
    deployed_version: 1,
    version: 2,
    deployed_at: expect.any(String),
  });
  expect(data.deployment).toMatchObject({ chain_id: data.chain.id, chain_version: 1, at: data.chain.deployed_at });
  expect(states(data)).toEqual(['offline', 'offline']);
  await rest.data('PUT', url, { body: { target: { endpoint: 'b.example:80' } } });
  expect(await rest.data('GET', url)).toMatchObject({ status: 'modified', deployed_version: 1 });
  await rest.data('POST', `${url}/deploy`);
  const { items } = await rest.data('GET', `${url}/deployments`);
  expect(items.map((one: { chain_version: number }) => one.chain_version)).toEqual([3, 1]);
});

test('it waits until each connected node has applied or rejected', async () => {
  const [a = '', b = ''] = nodes;
  rest.plane.connect(a);
  rest.plane.connect(b);
  const waiting = rest.data('POST', `${url}/deploy?wait=applied&timeout_ms=30000`);
  await expect.poll(() => rest.plane.contexts.length).toBeGreaterThan(3);
  rest.plane.applied(a);
  rest.plane.rejected(b, 'hops[1].listen_port');
  const data = await waiting;
  expect(states(data)).toEqual(['applied', 'rejected']);
  expect(data.deployment.nodes[1].errors).toEqual([
    { resource_type: 'l4_chain', resource_id: 'x', path: 'hops[1].listen_port', message: 'port in use' },
  ]);
  expect((await rest.data('GET', `/api/nodes/${a}`)).apply).toMatchObject({ state: 'applied', errors: [] });
  expect((await rest.data('GET', `/api/nodes/${b}`)).apply).toMatchObject({
    state: 'rejected',
    errors: [{ message: 'port in use' }],
  });
});

test('a node that goes away is not waited for', async () => {
  const [a = ''] = nodes;
  rest.plane.connect(a);
  const waiting = rest.data('POST', `${url}/deploy?wait=applied&timeout_ms=30000`);
  await expect.poll(() => rest.plane.contexts.length).toBeGreaterThan(3);
  rest.plane.disconnect(a);
  expect(states(await waiting)).toEqual(['offline', 'offline']);
});

test('the timeout is a 200, and the states tell', async () => {
  rest.plane.connect(nodes[0] ?? '');
  expect(states(await rest.data('POST', `${url}/deploy?wait=applied&timeout_ms=1`))).toEqual(['pending', 'offline']);
  expect(states(await rest.data('POST', `${url}/deploy?wait=applied&timeout_ms=0`))).toEqual(['pending', 'offline']);
  for (const query of [
    'wait=pushed',
    'wait=',
    'wait=applied&timeout_ms=30001',
    'timeout_ms=-1',
    'wait=applied&timeout_ms=1.5',
  ]) {
    expect([query, (await rest.call('POST', `${url}/deploy?${query}`)).statusCode]).toEqual([query, 400]);
  }
});

test('closing the server answers a deploy that waits', async () => {
  const [a = ''] = nodes;
  const own = await startRest();
  const node = await own.data('POST', '/api/nodes', { body: { name: 'x' } });
  own.plane.connect(node.id);
  const hops = [{ node_id: node.id, listen_port: 80, outer: 'tcp', security: 'raw' }];
  const body = { name: 'c', payload: 'tcp', hops, target: { endpoint: 'a.example:80' } };
  const chain = await own.data('POST', '/api/l4-chains', { body });
  const waiting = own.data('POST', `/api/l4-chains/${chain.id}/deploy?wait=applied&timeout_ms=30000`);
  await expect.poll(() => own.plane.contexts.length).toBe(3);
  await own.app.close();
  expect(states(await waiting)).toEqual(['pending']);
  expect(a).not.toBe(node.id);
});

test('deploying a disabled chain is a conflict', async () => {
  await rest.data('PUT', url, { body: { enabled: false } });
  expect(await rest.data('GET', url)).toMatchObject({ status: 'disabled' });
  const answer = await rest.call('POST', `${url}/deploy`);
  expect([answer.statusCode, answer.json().error]).toEqual([409, expect.stringMatching(/^conflict: /)]);
});

test('what a chain answers can be sent back as it is', async () => {
  const hops = [
    {
      node_id: nodes[0],
      listen_addr: '2001:DB8:0:0::1',
      listen_port: 443,
      outer: 'tcp',
      security: 'raw',
      server_names: ['B.example', '*.A.example'],
      dial_addr: 'Gate.Example',
    },
  ];
  await rest.data('PUT', url, { body: { hops, target: { endpoint: '[2001:0db8::0001]:80' } } });
  const { name, description, enabled, payload, ...shown } = await rest.data('GET', url);
  expect(shown.hops).toEqual([
    {
      node_id: nodes[0],
      listen_addr: '2001:db8::1',
      listen_port: 443,
      outer: 'tcp',
      security: 'raw',
      server_names: ['b.example', '*.a.example'],
      dial_addr: 'gate.example',
    },
  ]);
  expect(shown.target).toEqual({ endpoint: '[2001:db8::1]:80' });
  const again = await rest.data('PUT', url, {
    body: { name, description, enabled, payload, hops: shown.hops, target: shown.target },
  });
  expect(again.version).toBe(shown.version);
});

describe('nodes', () => {
  test('a PSK reset waits for the old sessions and tells whether they ended', async () => {
    const [a = ''] = nodes;
    expect(await rest.data('POST', `/api/nodes/${a}/psk`)).toMatchObject({
      node_id: a,
      control_psk: 'svcpsk1_new',
      sessions_ended: true,
    });
    rest.plane.setSessionsEnded(false);
    const { psk_fingerprint, sessions_ended } = await rest.data('POST', `/api/nodes/${a}/psk`);
    expect(sessions_ended).toBe(false);
    expect(await rest.data('GET', `/api/nodes/${a}`)).toMatchObject({ psk_fingerprint });
    expect(rest.plane.sessionsEndedCalls).toEqual([a, a]);
  });

  test('deleting one ends its session', async () => {
    const { id } = await rest.data('POST', '/api/nodes', { body: { name: 'free' } });
    await rest.data('DELETE', `/api/nodes/${id}`);
    expect(rest.plane.sessionsEndedCalls).toEqual([id]);
  });

  test('a refresh tells whether the push left', async () => {
    const [a = ''] = nodes;
    const first = await rest.data('POST', `/api/nodes/${a}/config`);
    expect(first).toMatchObject({ node_id: a, pushed: false });
    rest.plane.connect(a);
    const second = await rest.data('POST', `/api/nodes/${a}/config`, { body: {} });
    expect(second).toEqual({ node_id: a, generation: first.generation + 1, pushed: true });
    expect((await rest.data('GET', `/api/nodes/${a}`)).apply).toMatchObject({
      state: 'pushed',
      generation: second.generation,
      errors: [],
    });
  });

  test('the snapshot is the newest one; an earlier generation is not to be had', async () => {
    const [a = ''] = nodes;
    const { generation } = await rest.data('GET', `/api/nodes/${a}/config`);
    expect(await rest.data('GET', `/api/nodes/${a}/config?generation=${generation + 5}`)).toMatchObject({ generation });
    expect((await rest.call('GET', `/api/nodes/${a}/config?generation=${generation - 1}`)).statusCode).toBe(404);
    expect((await rest.call('GET', `/api/nodes/${a}/config?generation=x`)).statusCode).toBe(400);
  });

  test('every field is always there', async () => {
    const node = await rest.data('POST', '/api/nodes', { body: { name: 'bare', issue_psk: false } });
    expect(node).toMatchObject({
      control_psk: null,
      psk_fingerprint: null,
      description: null,
      address: null,
      labels: {},
      detected_addresses: [],
    });
    const { control_psk: _secret, ...rest_ } = node;
    expect(await rest.data('GET', `/api/nodes/${node.id}`)).toEqual(rest_);
    const names =
      'id name description address labels status psk_fingerprint psk_issued_at multiplex multiplex_port ' +
      'reported_multiplex reported_multiplex_port duplicate_agent version_conflict_at agent_version public_ipv4 ' +
      'public_ipv6 detected_addresses cpu_usage memory_usage uptime_seconds last_seen_at generation ' +
      'applied_generation apply created_at updated_at version';
    expect(Object.keys(rest_).toSorted()).toEqual(names.split(' ').toSorted());
    await rest.data('PUT', '/api/settings/connectivity', {
      body: {
        multiplex: true,
        multiplex_port: 9000,
        nodes: [{ node_id: node.id, multiplex: true, multiplex_port: 9001 }],
      },
    });
    expect(await rest.data('GET', `/api/nodes/${node.id}`)).toMatchObject({ multiplex: true, multiplex_port: 9001 });
    expect((await rest.data('GET', '/api/settings/connectivity')).nodes).toEqual([
      { node_id: node.id, multiplex: true, multiplex_port: 9001 },
    ]);
  });
});
