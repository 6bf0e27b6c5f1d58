/**
 * `docs/contract/rest.md#l4-chains` and `docs/contract/rest.md#nodes`: deploy, `?wait=applied`, deployments, snapshot, PSK.
 */
import { setImmediate } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { eventually } from '../support/eventually.js';
import { startRest, type JsonData, type RestFixture } from '../support/rest-fixture.js';

let rest: RestFixture;
/** Ids of the nodes of the test's chain. */
let [first, second] = ['', ''];
let url: string;
let made = 0;
beforeAll(async () => {
  rest = await startRest();
});
beforeEach(async () => {
  made += 1;
  const nodes: string[] = [];
  for (const side of ['first', 'second']) nodes.push((await aNode(`${side} ${made}`)).id);
  [first = '', second = ''] = nodes;
  url = await aChain(nodes);
});
afterEach(() => vi.restoreAllMocks());
afterAll(() => rest.close());

const aNode = (name: string, service = rest): Promise<JsonData> =>
  service.data('POST', '/api/nodes', { body: { name, address: 'gate.example' } });

/** Answers the chain's URL. */
async function aChain(nodes: readonly string[], service = rest): Promise<string> {
  const hops = nodes.map((node_id) => ({ node_id, listen_port: 80, outer: 'tcp', security: 'raw' }));
  const body = { name: `chain ${made}`, payload: 'tcp', hops, target: { endpoint: 'a.example:80' } };
  return `/api/l4-chains/${(await service.data('POST', '/api/l4-chains', { body })).id}`;
}

const deployBegan = (service = rest): Promise<void> =>
  eventually(async () => (await service.log()).at(-1)?.type).toBe('ChainDeployed');

const states = (data: { deployment: { nodes: { state: string }[] } }) =>
  data.deployment.nodes.map((node) => node.state);

test('a deploy answers the chain and its deployment, and does not wait for offline nodes', async () => {
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
  const edited = { target: { endpoint: 'b.example:80' }, name: `renamed ${made}` };
  await rest.data('PUT', url, { body: edited });
  expect(await rest.data('GET', url)).toMatchObject({ status: 'modified', deployed_version: 1 });
  await rest.data('POST', `${url}/deploy`);
  const { items } = await rest.data('GET', `${url}/deployments?definition=true`);
  expect(items.map((one: { chain_version: number }) => one.chain_version)).toEqual([3, 1]);
  const { payload, hops } = data.chain;
  expect(items.map((one: { definition: object }) => one.definition)).toEqual([
    { payload, hops, target: edited.target },
    { payload, hops, target: { endpoint: 'a.example:80' } },
  ]);
  const short = (await rest.data('GET', `${url}/deployments`)).items;
  expect(short[1]).toEqual(data.deployment);
  expect(items).toEqual(short.map((one: object, index: number) => ({ ...one, definition: items[index].definition })));
});

test('wait=applied answers when each connected node has applied or rejected', async () => {
  const [applying, rejecting] = [await rest.connect(first), await rest.connect(second)];
  const waiting = rest.data('POST', `${url}/deploy?wait=applied&timeout_ms=30000`);
  await applying.apply(await applying.receive());
  await rejecting.reject(await rejecting.receive());
  const data = await waiting;
  expect(states(data)).toEqual(['applied', 'rejected']);
  const errors = [{ resource_type: 'l4_chain', resource_id: 'c', path: 'hops[0]', message: 'no' }];
  expect(data.deployment.nodes[1].errors).toEqual(errors);
  expect((await rest.data('GET', `/api/nodes/${first}`)).apply).toMatchObject({ state: 'applied', errors: [] });
  expect((await rest.data('GET', `/api/nodes/${second}`)).apply).toMatchObject({ state: 'rejected', errors });
});

test('wait=applied does not wait for a node that disconnects', async () => {
  const agent = await rest.connect(first);
  const waiting = rest.data('POST', `${url}/deploy?wait=applied&timeout_ms=30000`);
  await deployBegan();
  await agent.disconnect();
  expect(states(await waiting)).toEqual(['offline', 'offline']);
});

test('wait=applied answers 200 with the states as they are when the time is up; other values are a 400', async () => {
  await rest.connect(first);
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

test('deploys that wait are bounded for each user and in all: beyond it a 429 that deploys nothing', async () => {
  const bounded = await startRest({ waitingDeploys: { inAll: 3, perUser: 2 } });
  const node = await aNode('connected', bounded);
  const agent = await bounded.connect(node.id);
  const chain = await aChain([node.id], bounded);
  const wait = (role: 'admin' | 'operator', more = {}) =>
    bounded.call('POST', `${chain}/deploy?wait=applied&timeout_ms=30000`, { role, ...more });
  const deploys = async (): Promise<number> =>
    (await bounded.log()).filter((event) => event.type === 'ChainDeployed').length;
  const waiting = [wait('admin'), wait('admin')];
  await eventually(deploys).toBe(2);
  const refused = await wait('admin', { headers: { 'idempotency-key': 'again' } });
  expect([refused.statusCode, refused.json().error]).toEqual([
    429,
    'rate_limited: wait: at most 2 deploys of one user wait at a time; nothing was deployed: try again, or deploy without waiting',
  ]);
  expect(Number(refused.headers['retry-after'])).toBeGreaterThan(0);
  waiting.push(wait('operator'));
  await eventually(deploys).toBe(3);
  const full = await wait('operator');
  expect([full.statusCode, full.json().error]).toEqual([429, expect.stringContaining('at most 3 deploys wait')]);
  // Deploys that do not wait have no bound.
  expect((await bounded.call('POST', `${chain}/deploy`)).statusCode).toBe(200);
  expect(await deploys()).toBe(4);
  await agent.disconnect();
  for (const answer of await Promise.all(waiting)) expect(answer.statusCode).toBe(200);
  // The places are free again, and refused commands keep none.
  await bounded.data('PUT', chain, { body: { enabled: false } });
  for (let i = 0; i < 4; i += 1) expect((await wait('admin')).statusCode).toBe(409);
  await bounded.data('PUT', chain, { body: { enabled: true } });
  const key = { headers: { 'idempotency-key': 'again' } };
  expect((await wait('admin', key)).statusCode).toBe(200);
  await bounded.close();
});

test('closing the server answers a deploy that still waits', async () => {
  const closing = await startRest();
  const node = await aNode('connected', closing);
  await closing.connect(node.id);
  const chain = await aChain([node.id], closing);
  const waiting = closing.data('POST', `${chain}/deploy?wait=applied&timeout_ms=30000`);
  await deployBegan(closing);
  await closing.app.close();
  expect(states(await waiting)).toEqual(['pending']);
  await closing.close();
});

describe('nodes', () => {
  test('a PSK reset waits for the old sessions and answers whether they ended', async () => {
    const sessionsEnded = vi.spyOn(rest.deps, 'sessionsEnded');
    expect(await rest.data('POST', `/api/nodes/${first}/psk`)).toMatchObject({
      node_id: first,
      control_psk: expect.stringMatching(/^svcpsk1_/),
      sessions_ended: true,
    });
    sessionsEnded.mockResolvedValue(false);
    const reset = () => rest.data('POST', `/api/nodes/${first}/psk`, { headers: { 'idempotency-key': 'reset' } });
    const { psk_fingerprint, sessions_ended } = await reset();
    expect(sessions_ended).toBe(false);
    expect(await rest.data('GET', `/api/nodes/${first}`)).toMatchObject({ psk_fingerprint });
    // A repeat does not claim what nobody has seen.
    expect(await reset()).toMatchObject({ control_psk: null, psk_fingerprint, sessions_ended: false });
    expect(sessionsEnded.mock.calls.map(([nodeId]) => nodeId)).toEqual([first, first, first]);
  });

  test('deleting a node ends its sessions', async () => {
    const sessionsEnded = vi.spyOn(rest.deps, 'sessionsEnded');
    const { id } = await aNode('unused');
    await rest.data('DELETE', `/api/nodes/${id}`);
    expect(sessionsEnded.mock.calls.map(([nodeId]) => nodeId)).toEqual([id]);
  });

  test('a refresh answers the new generation, and whether it was pushed', async () => {
    const offline = await rest.data('POST', `/api/nodes/${first}/config`);
    expect(offline).toMatchObject({ node_id: first, pushed: false });
    const agent = await rest.connect(first);
    const [online, push] = await Promise.all([
      rest.data('POST', `/api/nodes/${first}/config`, { body: {} }),
      agent.receive(),
    ]);
    expect(online).toEqual({ node_id: first, generation: push.generation, pushed: true });
    expect(push.generation).toBeGreaterThan(offline.generation);
    expect((await rest.data('GET', `/api/nodes/${first}`)).apply).toMatchObject({
      state: 'pushed',
      generation: push.generation,
      errors: [],
    });
  });

  test('a refresh does not wait for an agent that takes nothing of what it is sent', async () => {
    const { id } = await aNode('reads-nothing');
    const agent = await rest.connect(id);
    const unsent = vi.spyOn(rest.deps.delivery, 'unsentMs').mockReturnValue(501);
    expect(await rest.data('POST', `/api/nodes/${id}/config`)).toMatchObject({ pushed: false });
    expect(unsent.mock.calls).toEqual([[id]]);
    unsent.mockRestore();
    expect((await agent.receive()).generation).toBe(rest.deps.fleet.generation(id));
    expect(rest.deps.delivery.unsentMs(id)).toBe(0);
    await agent.disconnect();
  });

  test('the snapshot of a node that is being created or deleted is there or a 404, however the reads race', async () => {
    const statuses = new Set<number>();
    for (let round = 0; round < 10; round += 1) {
      const name = `raced-${round}`;
      let settled = false;
      const life = aNode(name)
        .then(({ id }) => rest.call('DELETE', `/api/nodes/${id}`))
        .finally(() => (settled = true));
      while (!settled) {
        // The list knows a node before its creator does. Reads alone would leave the log no turn to be written.
        await setImmediate();
        const { items } = await rest.data('GET', `/api/nodes?q=${name}`);
        for (const { id } of items) statuses.add((await rest.call('GET', `/api/nodes/${id}/config`)).statusCode);
      }
      expect((await life).statusCode).toBe(200);
    }
    expect([...statuses].filter((code) => code !== 200 && code !== 404)).toEqual([]);
  });

  test('a node shows its own multiplexing, as the settings do', async () => {
    const node = await aNode('multiplexed');
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
