/** Chains: `docs/contract/rest.md#l4-chains`, `docs/contract/domain.md#l4-chain`: definitions, statuses, collisions. */
import { randomBytes, randomUUID } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import {
  chainFields,
  createChain,
  createNode,
  createUpstream,
  deploy,
  fresh,
  hasExactly,
  port,
  rawHop,
} from './support/resources.js';
import type { Chain, ListOf } from './support/resources.js';
import { refused } from './support/rest.js';
import { sharedService } from './support/running.js';

const shared = sharedService();
const post = (json: object) => shared.api.send<Chain>('POST', '/api/l4-chains', { json });
const put = (id: string, json: object) => shared.api.send<Chain>('PUT', `/api/l4-chains/${id}`, { json });
const target = { endpoint: '192.0.2.9:9' };
const udpHop = (nodeId: string, listenPort: number, more: object = {}) =>
  rawHop(nodeId, listenPort, { outer: 'udp', ...more });

describe('creating a chain', () => {
  it('answers 201 with every field; hops have the defaults and omit fields that are not set', async () => {
    const { api } = shared;
    const [a, b] = [await createNode(api), await createNode(api, { address: '192.0.2.5' })];
    const name = fresh('chain');
    const listen = port();
    const hops = [rawHop(a.id, listen), rawHop(b.id, listen, { listen_addr: '0:0::1', dial_addr: 'Dial.Example' })];
    const answer = await post({ name, payload: 'tcp', hops, target: { endpoint: '[2001:DB8::9]:9' } });
    expect(answer.status).toBe(201);
    expect(answer.headers.location).toBe(`/api/l4-chains/${answer.data.id}`);
    hasExactly(answer.data, chainFields);
    expect(answer.data).toMatchObject({
      name,
      description: null,
      enabled: true,
      payload: 'tcp',
      status: 'draft',
      deployed_version: null,
      deployed_at: null,
    });
    const hop = { listen_port: listen, outer: 'tcp', security: 'raw' };
    expect(answer.data.hops).toEqual([
      { node_id: a.id, listen_addr: '0.0.0.0', ...hop },
      { node_id: b.id, listen_addr: '::1', dial_addr: 'dial.example', ...hop },
    ]);
    expect(answer.data.target).toEqual({ endpoint: '[2001:db8::9]:9' });
    const got = await api.send<Chain>('GET', `/api/l4-chains/${answer.data.id}`);
    expect(got.data).toEqual(answer.data);
    expect(got.headers.etag).toBe(`"${answer.data.version}"`);
  });

  it('gives an answer that can be sent back unchanged', async () => {
    const { api } = shared;
    const node = await createNode(api);
    const tls = { server_name: 'A.example', spki_pins_sha256: [randomBytes(32).toString('base64')] };
    const chain = await createChain(api, {
      description: 'back and forth',
      hops: [rawHop(node.id, port(), { server_names: ['B.example', '*.A.example'] })],
      target: { endpoint: 'T.example:443', tls },
    });
    expect(chain.hops[0]).toMatchObject({ server_names: ['b.example', '*.a.example'] });
    expect(chain.target).toEqual({ endpoint: 't.example:443', tls: { ...tls, server_name: 'a.example' } });
    const { name, description, enabled, payload, hops, target: to } = chain;
    const back = await put(chain.id, { name, description, enabled, payload, hops, target: to });
    expect(back.data).toEqual(chain);
    await api.ok('DELETE', `/api/l4-chains/${chain.id}`);
    const again = await post({ name, description, enabled, payload, hops, target: to });
    expect(again.data).toMatchObject({ name, description, enabled, payload, hops, target: to });
  });

  it('requires name, payload, hops and target, at most 8 hops, and each node at most once', async () => {
    const { api } = shared;
    const node = await createNode(api);
    const whole = { name: 'x', payload: 'tcp', hops: [rawHop(node.id, 5_000)], target };
    for (const field of ['name', 'payload', 'hops', 'target'] as const) {
      const { [field]: _omitted, ...rest } = whole;
      refused(await post(rest), 400, field);
      refused(await post({ ...whole, [field]: null }), 400, field);
    }
    refused(await post({ ...whole, hops: [] }), 400, 'hops');
    refused(
      await post({ ...whole, hops: Array.from({ length: 9 }, (_, i) => rawHop(randomUUID(), 6_000 + i)) }),
      400,
      'hops',
    );
    refused(await post({ ...whole, hops: [rawHop(node.id, 5_000), rawHop(node.id, 5_001)] }), 400, 'hops[1].node_id');
    refused(await post({ ...whole, payload: 'icmp' }), 400, 'payload');
    refused(await post({ ...whole, status: 'deployed' }), 400, 'status');
    refused(await post({ ...whole, enabled: 'yes' }), 400, 'enabled');
    for (const bad of [{}, { endpoint: '192.0.2.1:1', upstream_id: randomUUID() }, { upstream_id: 'x' }, 'x', []]) {
      refused(await post({ ...whole, target: bad }), 400, 'target');
    }
    for (const field of ['outer', 'security', 'listen_port', 'node_id'] as const) {
      const { [field]: _omitted, ...hop } = rawHop(node.id, 5_000);
      refused(await post({ ...whole, hops: [hop] }), 400, `hops[0].${field}`);
    }
    for (const listen of ['example.net', '192.0.2.1:80', '', '256.0.0.1', 'fe80::1%eth0']) {
      refused(
        await post({ ...whole, hops: [rawHop(node.id, 5_000, { listen_addr: listen })] }),
        400,
        'hops[0].listen_addr',
      );
    }
  });

  it('refuses a combination that is not allowed and lists the allowed ones', async () => {
    const { api } = shared;
    const node = await createNode(api);
    for (const [payload, outer, security] of [
      ['tcp', 'udp', 'raw'],
      ['tcp', 'tcp', 'noise'],
      ['udp', 'tcp', 'raw'],
      ['tcp', 'quic', 'raw'],
      ['udp', 'udp', 'tls'],
      ['tcp', 'fake_tcp', 'raw'],
    ]) {
      const answer = await post({ name: 'x', payload, hops: [rawHop(node.id, 7_000, { outer, security })], target });
      refused(answer, 400, 'hops[0]', 'raw');
    }
    const raw = { name: 'x', payload: 'tcp', target };
    refused(
      await post({ ...raw, hops: [rawHop(node.id, 7_000, { credential_id: randomUUID() })] }),
      400,
      'credential_id',
    );
    refused(await post({ ...raw, hops: [rawHop(node.id, 7_000, { max_streams: 100 })] }), 400, 'max_streams');
    const udp = { name: 'x', payload: 'udp', target };
    refused(await post({ ...udp, hops: [udpHop(node.id, 7_000, { server_names: ['a.b'] })] }), 400, 'server_names');
    const tls = { server_name: 'a.b', spki_pins_sha256: [randomBytes(32).toString('base64')] };
    refused(await post({ ...udp, hops: [udpHop(node.id, 7_000)], target: { ...target, tls } }), 400, 'target');
    const secure = await createUpstream(api, { tls });
    const over = { ...udp, hops: [udpHop(node.id, 7_000)], target: { upstream_id: secure.id } };
    refused(await post(over), 400, 'target');
  });

  it('makes TLS impossible for an upstream that is the target of a udp chain', async () => {
    const { api } = shared;
    const [node, upstream] = [await createNode(api), await createUpstream(api)];
    const chain = await createChain(api, {
      payload: 'udp',
      hops: [udpHop(node.id, port())],
      target: { upstream_id: upstream.id },
    });
    const tls = { server_name: 'a.b', spki_pins_sha256: [randomBytes(32).toString('base64')] };
    refused(await api.send('PUT', `/api/l4-upstreams/${upstream.id}`, { json: { tls } }), 409, chain.name);
  });
});

describe('updating a chain', () => {
  it('refuses null for every field except the description', async () => {
    const { api } = shared;
    const node = await createNode(api);
    const chain = await createChain(api, { description: 'x', hops: [rawHop(node.id, port())] });
    for (const field of ['name', 'payload', 'hops', 'target', 'enabled']) {
      refused(await put(chain.id, { [field]: null }), 400, field);
    }
    expect((await put(chain.id, { description: null })).data.description).toBeNull();
    refused(await put(chain.id, { deployed_version: 1 }), 400, 'deployed_version');
    refused(await put(chain.id, { payload: 'udp' }), 400, 'hops[0]');
  });

  it('takes the chain through the statuses draft, deployed, modified and disabled', async () => {
    const { api } = shared;
    const node = await createNode(api);
    const [first, second] = [port(), port()];
    const chain = await createChain(api, { hops: [rawHop(node.id, first)] });
    const off = await put(chain.id, { enabled: false });
    expect(off.data.status).toBe('disabled');
    refused(await api.send('POST', `/api/l4-chains/${chain.id}/deploy`), 409, 'disabled');
    const on = await put(chain.id, { enabled: true });
    expect(on.data).toMatchObject({ status: 'draft', deployed_version: null, deployed_at: null });
    const deployed = await deploy(api, chain);
    expect(deployed.chain.status).toBe('deployed');
    expect(deployed.chain.deployed_version).toBe(on.data.version);
    expect(deployed.chain.deployed_at).toBe(deployed.deployment.at);
    expect(deployed.chain.version).toBeGreaterThan(on.data.version);
    expect((await put(chain.id, { hops: [rawHop(node.id, second)] })).data.status).toBe('modified');
    expect((await put(chain.id, { hops: [rawHop(node.id, first)] })).data.status).toBe('deployed');
    expect((await put(chain.id, { description: 'said', name: fresh('renamed') })).data.status).toBe('deployed');
    expect((await put(chain.id, { target: { endpoint: '192.0.2.10:1' } })).data.status).toBe('modified');
    expect((await put(chain.id, { enabled: false })).data.status).toBe('disabled');
    expect((await put(chain.id, { enabled: true })).data.status).toBe('modified');
  });

  it('is impossible after its deletion, which answers 200 and {}', async () => {
    const { api } = shared;
    const node = await createNode(api);
    const chain = await createChain(api, { hops: [rawHop(node.id, port())] });
    await deploy(api, chain);
    const answer = await api.send('DELETE', `/api/l4-chains/${chain.id}`);
    expect(answer.status).toBe(200);
    expect(answer.data).toEqual({});
    refused(await api.send('GET', `/api/l4-chains/${chain.id}`), 404);
    refused(await api.send('GET', `/api/l4-chains/${chain.id}/deployments`), 404);
    refused(await api.send('POST', `/api/l4-chains/${chain.id}/deploy`), 404);
  });

  it('keeps names unique among chains, but not across resources', async () => {
    const { api } = shared;
    const node = await createNode(api);
    const chain = await createChain(api, { hops: [rawHop(node.id, port())], name: node.name });
    refused(
      await post({ name: node.name.toUpperCase(), payload: 'tcp', hops: [rawHop(node.id, port())], target }),
      409,
    );
    expect(chain.name).toBe(node.name);
  });
});

describe('listener collisions', () => {
  it('name the other chain, for equal and wildcard addresses, at create, update and enable', async () => {
    const { api } = shared;
    const [node, other] = [await createNode(api), await createNode(api)];
    const listen = port();
    const chain = await createChain(api, { hops: [rawHop(node.id, listen)] });
    const at = (more: object = {}, id = node.id) => ({
      name: fresh('c'),
      payload: 'tcp',
      hops: [rawHop(id, listen, { ...more })],
      target,
    });
    refused(await post(at()), 409, chain.name);
    refused(await post(at({ listen_addr: '192.0.2.1' })), 409, chain.name);
    refused(await post(at({ listen_addr: '::' })), 409, chain.name);
    expect((await post(at({ listen_addr: '2001:db8::1' }))).status).toBe(201);
    expect((await post(at({}, other.id))).status).toBe(201);
    const udp = { name: fresh('u'), payload: 'udp', hops: [udpHop(node.id, listen)], target };
    expect((await post(udp)).status).toBe(201);
    refused(await post({ ...udp, name: fresh('u') }), 409, udp.name);
    const off = await post({ ...at(), enabled: false });
    expect(off.status).toBe(201);
    refused(await put(off.data.id, { enabled: true }), 409, chain.name);
    const moving = await createChain(api, { hops: [rawHop(node.id, port())] });
    refused(await put(moving.id, { hops: [rawHop(node.id, listen)] }), 409, chain.name);
  });

  it('do not arise between distinct server names and one RAW fallback', async () => {
    const { api } = shared;
    const node = await createNode(api);
    const listen = port();
    const at = (names?: readonly string[]) => ({
      name: fresh('sni'),
      payload: 'tcp',
      hops: [rawHop(node.id, listen, names === undefined ? {} : { server_names: names })],
      target,
    });
    const one = await post(at(['a.example', '*.b.example']));
    expect(one.status).toBe(201);
    expect((await post(at(['c.example']))).status).toBe(201);
    expect((await post(at(['x.b.example']))).status).toBe(201);
    refused(await post(at(['A.example'])), 409, one.data.name);
    const fallback = await post(at());
    expect(fallback.status).toBe(201);
    refused(await post(at()), 409, fallback.data.name);
    refused(await post(at(['a.example', 'A.EXAMPLE'])), 400, 'server_names');
  });

  it('arise with the deployed and the current definition of another chain, not of the same one', async () => {
    const { api } = shared;
    const node = await createNode(api);
    const [old, now] = [port(), port()];
    const chain = await createChain(api, { hops: [rawHop(node.id, old)] });
    await deploy(api, chain);
    expect((await put(chain.id, { hops: [rawHop(node.id, now)] })).status).toBe(200);
    const at = (listen: number) => ({ name: fresh('c'), payload: 'tcp', hops: [rawHop(node.id, listen)], target });
    refused(await post(at(old)), 409, chain.name);
    refused(await post(at(now)), 409, chain.name);
    await deploy(api, chain);
    expect((await post(at(old))).status).toBe(201);
    await put(chain.id, { enabled: false });
    expect((await post(at(now))).status).toBe(201);
    refused(await put(chain.id, { enabled: true }), 409);
  });

  it('arise with the multiplex port of a node, on ::', async () => {
    const { api } = shared;
    const node = await createNode(api);
    const listen = port();
    const chain = await createChain(api, { hops: [rawHop(node.id, listen, { listen_addr: '192.0.2.1' })] });
    const override = (multiplexPort: number) =>
      api.send('PUT', '/api/settings/connectivity', {
        json: { nodes: [{ node_id: node.id, multiplex: true, multiplex_port: multiplexPort }] },
      });
    refused(await override(listen), 409, chain.name);
    const free = port();
    expect((await override(free)).status).toBe(200);
    refused(await post({ name: fresh('c'), payload: 'tcp', hops: [rawHop(node.id, free)], target }), 409);
    const udp = { name: fresh('u'), payload: 'udp', hops: [udpHop(node.id, free)], target };
    expect((await post(udp)).status).toBe(201);
  });
});

describe('the list of chains', () => {
  it('is paged and has every field', async () => {
    const { api } = shared;
    const tag = randomUUID();
    const node = await createNode(api);
    for (const name of ['b', 'A']) await createChain(api, { name: `${name} ${tag}`, hops: [rawHop(node.id, port())] });
    const list = await api.ok<ListOf<Chain>>('GET', `/api/l4-chains?q=${tag}`);
    expect(list).toMatchObject({ total: 2, page: 1, page_size: 50 });
    expect(list.items.map(({ name }) => name)).toEqual([`A ${tag}`, `b ${tag}`]);
    for (const item of list.items) hasExactly(item, chainFields);
  });
});
