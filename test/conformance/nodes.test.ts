/** Nodes without connected agents, links and commands: `docs/contract/rest.md#nodes`. */
import { randomUUID } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { enrol, fingerprint } from './support/agent.js';
import { createChain, createNode, fresh, hasExactly, nodeFields, port, rawHop, uuid } from './support/resources.js';
import type { ListOf, NewNode, NodeData } from './support/resources.js';
import { refused } from './support/rest.js';
import { sharedService } from './support/running.js';
import { x25519 } from '@noble/curves/ed25519.js';

const shared = sharedService();

describe('creating a node', () => {
  it('answers 201 with Location, every field (null if unknown) and the PSK, which is shown only once', async () => {
    const { api } = shared;
    const name = fresh('edge');
    const answer = await api.send<NewNode>('POST', '/api/nodes', { json: { name } });
    expect(answer.status).toBe(201);
    expect(answer.headers.location).toBe(`/api/nodes/${answer.data.id}`);
    hasExactly(answer.data, [...nodeFields, 'control_psk']);
    const { control_psk: psk, ...node } = answer.data;
    expect(node).toMatchObject({
      name,
      description: null,
      address: null,
      labels: {},
      status: 'pending',
      multiplex: false,
      multiplex_port: null,
      reported_multiplex: null,
      reported_multiplex_port: null,
      duplicate_agent: false,
      version_conflict_at: null,
      agent_version: null,
      public_ipv4: null,
      public_ipv6: null,
      detected_addresses: [],
      cpu_usage: null,
      memory_usage: null,
      uptime_seconds: null,
      last_seen_at: null,
      applied_generation: null,
      apply: { state: 'none', generation: null, at: null, errors: [] },
    });
    expect(node.id).toMatch(uuid);
    expect(node.generation).toBeGreaterThan(0);
    expect(node.psk_issued_at).not.toBeNull();
    const { staticPrivate } = enrol(node.id, psk);
    expect(node.psk_fingerprint).toBe(fingerprint(x25519.getPublicKey(staticPrivate)));
    const got = await api.send<NodeData>('GET', `/api/nodes/${node.id}`);
    expect(got.data).toEqual(node);
    expect(got.headers.etag).toBe(`"${node.version}"`);
    hasExactly(got.data.apply, ['state', 'generation', 'at', 'errors']);
    expect(got.text).not.toContain('svcpsk1_');
  });

  it('issues no PSK with issue_psk: false', async () => {
    const node = await createNode(shared.api, { issue_psk: false });
    expect(node).toMatchObject({ control_psk: null, psk_fingerprint: null, psk_issued_at: null });
  });

  it('refuses read-only fields, and null for fields that cannot be cleared', async () => {
    const { api } = shared;
    for (const field of ['id', 'status', 'multiplex', 'multiplex_port', 'generation', 'version', 'psk_fingerprint']) {
      refused(await api.send('POST', '/api/nodes', { json: { name: 'x', [field]: 1 } }), 400, field);
    }
    refused(await api.send('POST', '/api/nodes', { json: { name: null } }), 400, 'name');
    refused(await api.send('POST', '/api/nodes', { json: { name: 'x', labels: null } }), 400, 'labels');
    refused(await api.send('POST', '/api/nodes', { json: { name: 'x', issue_psk: null } }), 400, 'issue_psk');
    const node = await createNode(api, { description: null, address: null });
    expect(node).toMatchObject({ description: null, address: null });
  });

  it('keeps names unique, whatever their case or Unicode composition, until the node is deleted', async () => {
    const { api } = shared;
    const node = await createNode(api, { name: 'Caf\u00e9 Nord' });
    const again = await api.send('POST', '/api/nodes', { json: { name: 'CAFE\u0301 NORD' } });
    refused(again, 409, node.id);
    expect(await api.ok('DELETE', `/api/nodes/${node.id}`)).toEqual({});
    expect((await createNode(api, { name: 'CAFE\u0301 NORD' })).id).not.toBe(node.id);
  });

  it('answers addresses in canonical form and DNS names in lower case, and refuses anything else', async () => {
    const { api } = shared;
    for (const [given, answered] of [
      ['2001:DB8:0:0:0:0:0:1', '2001:db8::1'],
      ['Edge.Example.NET', 'edge.example.net'],
      ['192.0.2.7', '192.0.2.7'],
      ['::FFFF:192.0.2.1', undefined],
    ] as const) {
      const node = await createNode(api, { address: given });
      if (answered !== undefined) expect(node.address).toBe(answered);
      const put = await api.ok<NodeData>('PUT', `/api/nodes/${node.id}`, { address: node.address });
      expect(put).toMatchObject({ address: node.address, version: node.version });
    }
    for (const address of [
      '',
      'a b',
      'a:80',
      '256.1.1.1',
      '192.0.2.1:80',
      '[::1]',
      'http://x',
      '-a.example',
      'a..b',
      5,
    ]) {
      refused(await api.send('POST', '/api/nodes', { json: { name: 'bad', address } }), 400, 'address');
    }
  });
});

describe('updating a node', () => {
  it('changes the given fields, clears with null, increases the version, and accepts its own answer', async () => {
    const { api } = shared;
    const { control_psk: _psk, ...node } = await createNode(api, { description: 'first', labels: { a: '1', b: '2' } });
    const put = (json: object) => api.send<NodeData>('PUT', `/api/nodes/${node.id}`, { json });
    const named = await put({ description: 'second' });
    expect(named.status).toBe(200);
    expect(named.data).toMatchObject({ name: node.name, description: 'second', labels: node.labels });
    expect(named.data.version).toBeGreaterThan(node.version);
    expect(Date.parse(named.data.updated_at)).toBeGreaterThanOrEqual(Date.parse(node.updated_at));
    expect(named.data.created_at).toBe(node.created_at);
    expect((await put({ description: null })).data.description).toBeNull();
    expect((await put({ labels: { b: '2' } })).data.labels).toEqual({ b: '2' });
    const { name, description, address, labels } = await api.ok<NodeData>('GET', `/api/nodes/${node.id}`);
    const back = await put({ name, description, address, labels });
    expect(back.data).toEqual(await api.ok('GET', `/api/nodes/${node.id}`));
    for (const json of [
      { name: null },
      { labels: null },
      { issue_psk: true },
      { multiplex: true },
      { status: 'online' },
    ]) {
      refused(await put(json), 400, Object.keys(json)[0]!);
    }
  });

  it('lets a node keep its name in another case', async () => {
    const node = await createNode(shared.api);
    const renamed = await shared.api.ok<NodeData>('PUT', `/api/nodes/${node.id}`, { name: node.name.toUpperCase() });
    expect(renamed.name).toBe(node.name.toUpperCase());
    expect(renamed.generation).toBe(node.generation);
  });
});

describe('the PSK', () => {
  it('is replaced by a reset', async () => {
    const { api } = shared;
    const node = await createNode(api);
    const answer = await api.send<Record<string, unknown>>('POST', `/api/nodes/${node.id}/psk`);
    expect(answer.status).toBe(200);
    hasExactly(answer.data, ['node_id', 'control_psk', 'psk_fingerprint', 'sessions_ended']);
    expect(answer.data).toMatchObject({ node_id: node.id, sessions_ended: true });
    expect(answer.data.psk_fingerprint).not.toBe(node.psk_fingerprint);
    const now = await api.ok<NodeData>('GET', `/api/nodes/${node.id}`);
    expect(now.psk_fingerprint).toBe(answer.data.psk_fingerprint);
    expect(now.version).toBeGreaterThan(node.version);
    expect(now.generation).toBe(node.generation);
  });
});

describe('the configuration of a node', () => {
  interface Config {
    readonly node_id: string;
    readonly generation: number;
    readonly checksum: string;
    readonly snapshot: Record<string, unknown>;
  }

  it('is refreshed with a new generation, which is not pushed while no agent is connected', async () => {
    const { api } = shared;
    const node = await createNode(api);
    const answer = await api.ok<{ generation: number }>('POST', `/api/nodes/${node.id}/config`);
    hasExactly(answer, ['node_id', 'generation', 'pushed']);
    expect(answer).toMatchObject({ node_id: node.id, pushed: false });
    expect(answer.generation).toBeGreaterThan(node.generation);
    expect((await api.ok<NodeData>('GET', `/api/nodes/${node.id}`)).generation).toBe(answer.generation);
  });

  it('is shown with the field names of the proto files and a lower-case hex checksum', async () => {
    const { api } = shared;
    const node = await createNode(api);
    const listen = port();
    const chain = await createChain(api, { hops: [rawHop(node.id, listen)] });
    await api.ok('POST', `/api/l4-chains/${chain.id}/deploy`);
    const config = await api.ok<Config>('GET', `/api/nodes/${node.id}/config`);
    hasExactly(config, ['node_id', 'generation', 'checksum', 'snapshot']);
    expect(config.checksum).toMatch(/^[0-9a-f]{64}$/);
    const now = await api.ok<NodeData>('GET', `/api/nodes/${node.id}`);
    expect(config.generation).toBe(now.generation);
    expect(config.snapshot).toMatchObject({
      node_id: node.id,
      // proto3 JSON: 64-bit integers are strings.
      generation: String(now.generation),
      gateway: {
        tcp_proxy_rules: [
          {
            rule_id: `${chain.id}/0`,
            origin: { resource_type: 'l4_chain', resource_id: chain.id, resource_name: chain.name },
            listen_addr: '0.0.0.0',
            listen_port: listen,
            mode: 'TCP_PROXY_MODE_RAW',
            outbound: { endpoint: '192.0.2.9:9' },
          },
        ],
      },
    });
  });

  it('is a 404 for a generation before the first', async () => {
    const { api } = shared;
    const node = await createNode(api);
    const at = (g: number | string) => api.send<Config>('GET', `/api/nodes/${node.id}/config?generation=${g}`);
    expect((await at(node.generation)).data.generation).toBe(node.generation);
    expect((await at(node.generation + 1000)).data.generation).toBe(node.generation);
    refused(await at(0), 404);
    refused(await at(node.generation - 1), 404);
    refused(await at(-1), 400, 'generation');
    refused(await at('x'), 400, 'generation');
  });
});

describe('deleting a node', () => {
  it('answers {} and leaves nothing behind', async () => {
    const { api } = shared;
    const node = await createNode(api);
    const answer = await api.send('DELETE', `/api/nodes/${node.id}`);
    expect(answer.status).toBe(200);
    expect(answer.data).toEqual({});
    refused(await api.send('GET', `/api/nodes/${node.id}`), 404);
    refused(await api.send('DELETE', `/api/nodes/${node.id}`), 404);
    const list = await api.ok<ListOf<NodeData>>('GET', '/api/nodes?page_size=500');
    expect(list.items.map(({ id }) => id)).not.toContain(node.id);
  });

  it('is a 409 that lists the chains that use it, including disabled chains and deployed definitions', async () => {
    const { api } = shared;
    const [a, b] = [await createNode(api), await createNode(api)];
    const one = await createChain(api, { hops: [rawHop(a.id, port())] });
    const two = await createChain(api, { hops: [rawHop(a.id, port())], enabled: false });
    refused(await api.send('DELETE', `/api/nodes/${a.id}`), 409, one.name, two.name);
    await api.ok('POST', `/api/l4-chains/${one.id}/deploy`);
    await api.ok('PUT', `/api/l4-chains/${one.id}`, { hops: [rawHop(b.id, port())] });
    await api.ok('DELETE', `/api/l4-chains/${two.id}`);
    refused(await api.send('DELETE', `/api/nodes/${a.id}`), 409, one.name);
    refused(await api.send('DELETE', `/api/nodes/${b.id}`), 409, one.name);
    await api.ok('POST', `/api/l4-chains/${one.id}/deploy`);
    await api.ok('DELETE', `/api/nodes/${a.id}`);
  });
});

describe('the list of nodes', () => {
  it('is paged, sorted both ways by lower-case name, and empty past the end', async () => {
    const { api } = shared;
    const tag = randomUUID();
    for (const name of ['b', 'A', 'c', 'B2', 'Ä', 'z']) await createNode(api, { name: `${name} ${tag}` });
    const names = async (query: string) => {
      const list = await api.ok<ListOf<NodeData>>('GET', `/api/nodes?q=${tag}&${query}`);
      hasExactly(list, ['items', 'total', 'page', 'page_size']);
      expect(list.total).toBe(6);
      for (const item of list.items) hasExactly(item, nodeFields);
      return list.items.map((node) => node.name.split(' ')[0]);
    };
    const order = ['A', 'b', 'B2', 'c', 'z', 'Ä'];
    expect(await names('')).toEqual(order);
    expect(await names('sort=name')).toEqual(order);
    expect(await names('sort=-name')).toEqual(order.toReversed());
    expect(await names('sort=created_at')).toEqual(['b', 'A', 'c', 'B2', 'Ä', 'z']);
    expect(await names('sort=-created_at')).toEqual(['b', 'A', 'c', 'B2', 'Ä', 'z'].toReversed());
    expect(await names('page=2&page_size=4')).toEqual(order.slice(4));
    expect(await names('page=3&page_size=4')).toEqual([]);
    expect(await names('page=99999')).toEqual([]);
    const first = await api.ok<ListOf<NodeData>>('GET', '/api/nodes');
    expect(first).toMatchObject({ page: 1, page_size: 50 });
    const upper = await api.ok<ListOf<NodeData>>(
      'GET',
      `/api/nodes?q=${encodeURIComponent(`B2 ${tag}`.toUpperCase())}`,
    );
    expect(upper.total).toBe(1);
  });

  it('filters by status and label', async () => {
    const { api } = shared;
    const node = await createNode(api, { labels: { region: 'eu:1', tier: 'gold' } });
    const ids = async (query: string) =>
      (await api.ok<ListOf<NodeData>>('GET', `/api/nodes?page_size=500&${query}`)).items.map(({ id }) => id);
    expect(await ids('label=tier:gold')).toEqual([node.id]);
    expect(await ids('label=region:eu:1&label=tier')).toEqual([node.id]);
    expect(await ids('label=tier:silver')).toEqual([]);
    expect(await ids('label=tier:gold&label=region:us')).toEqual([]);
    expect(await ids('label=Tier:gold')).toEqual([]);
    expect(await ids('status=pending')).toContain(node.id);
    expect(await ids('status=online')).toEqual([]);
    expect(await ids('status=offline')).toEqual([]);
    expect(await ids('status=pending&label=tier:gold')).toEqual([node.id]);
  });
});
