/**
 * Deploy, plan and deployments of `docs/contract/rest.md#l4-chains` without connected agents, and the generations of
 * `docs/contract/domain.md#generation`.
 */
import { describe, expect, it } from 'vitest';
import {
  createChain,
  createNode,
  createUpstream,
  deploy,
  generations,
  hasExactly,
  port,
  rawHop,
  rfc3339,
  uuid,
} from './support/resources.js';
import type { Chain, Deployed, Deployment, NodeData } from './support/resources.js';
import { refused } from './support/rest.js';
import { sharedService } from './support/running.js';

const shared = sharedService();

interface Plan {
  readonly nodes: readonly {
    readonly node_id: string;
    readonly added: string[];
    readonly changed: string[];
    readonly removed: string[];
  }[];
  readonly collisions: readonly string[];
}

const plan = (chain: { readonly id: string }) => shared.api.send<Plan>('GET', `/api/l4-chains/${chain.id}/plan`);
const address = { address: '192.0.2.77' };

describe('a deploy', () => {
  it('answers the chain and the deployment, with the generation of each node', async () => {
    const { api } = shared;
    const nodes = [await createNode(api), await createNode(api, address)];
    const listen = port();
    const chain = await createChain(api, { hops: nodes.map(({ id }) => rawHop(id, listen)) });
    const before = await generations(api, nodes);
    const answer = await api.send<Deployed>('POST', `/api/l4-chains/${chain.id}/deploy`);
    expect(answer.status).toBe(200);
    hasExactly(answer.data, ['chain', 'deployment']);
    hasExactly(answer.data.deployment, ['id', 'chain_id', 'chain_version', 'at', 'nodes']);
    const { deployment } = answer.data;
    expect(deployment).toMatchObject({ chain_id: chain.id, chain_version: chain.version });
    expect(deployment.id).toMatch(uuid);
    expect(deployment.at).toMatch(rfc3339);
    expect(deployment.nodes.map(({ node_id }) => node_id).toSorted()).toEqual(nodes.map(({ id }) => id).toSorted());
    const after = new Map((await generations(api, nodes)).map((generation, i) => [nodes[i]!.id, generation]));
    for (const node of deployment.nodes) {
      hasExactly(node, ['node_id', 'generation', 'state', 'errors', 'listeners']);
      expect(node).toMatchObject({
        state: 'offline',
        errors: [],
        listeners: null,
        generation: after.get(node.node_id),
      });
    }
    expect([...after.values()].every((generation, i) => generation > before[i]!)).toBe(true);
    expect(answer.data.chain).toEqual(await api.ok('GET', `/api/l4-chains/${chain.id}`));
  });

  it('accepts no body except {}, and only valid query parameters', async () => {
    const { api } = shared;
    const node = await createNode(api);
    const chain = await createChain(api, { hops: [rawHop(node.id, port())] });
    const path = `/api/l4-chains/${chain.id}/deploy`;
    refused(await api.send('POST', path, { json: { force: true } }), 400, 'force');
    for (const query of [
      'wait=ever',
      'wait=',
      'timeout_ms=5',
      'wait=applied&timeout_ms=30001',
      'wait=applied&timeout_ms=-1',
      'x=1',
    ]) {
      const answer = await api.send('POST', `${path}?${query}`);
      if (query !== 'timeout_ms=5') refused(answer, 400);
    }
    expect((await api.send('POST', `${path}?wait=applied`, { json: {} })).status).toBe(200);
  });

  it('with wait=applied answers at once when no agent is connected', async () => {
    const { api } = shared;
    const node = await createNode(api);
    const chain = await createChain(api, { hops: [rawHop(node.id, port())] });
    const started = performance.now();
    const { deployment } = await deploy(api, chain, '?wait=applied&timeout_ms=20000');
    expect(performance.now() - started).toBeLessThan(10_000);
    expect(deployment.nodes).toMatchObject([{ node_id: node.id, state: 'offline' }]);
  });

  it('lists the nodes of the old and the new definition', async () => {
    const { api } = shared;
    const [a, b] = [await createNode(api), await createNode(api)];
    const chain = await createChain(api, { hops: [rawHop(a.id, port())] });
    await deploy(api, chain);
    await api.ok('PUT', `/api/l4-chains/${chain.id}`, { hops: [rawHop(b.id, port())] });
    const { deployment } = await deploy(api, chain);
    expect(deployment.nodes.map(({ node_id }) => node_id).toSorted()).toEqual([a.id, b.id].toSorted());
  });

  it('is first in the list of deployments, which is not paged', async () => {
    const { api } = shared;
    const node = await createNode(api);
    const chain = await createChain(api, { hops: [rawHop(node.id, port())] });
    const path = `/api/l4-chains/${chain.id}/deployments`;
    expect(await api.ok('GET', path)).toEqual({ items: [] });
    const made: Deployment[] = [];
    for (let i = 0; i < 3; i += 1) {
      await api.ok('PUT', `/api/l4-chains/${chain.id}`, { target: { endpoint: `192.0.2.1:${i + 1}` } });
      made.unshift((await deploy(api, chain)).deployment);
    }
    const list = await api.ok<{ items: Deployment[] }>('GET', path);
    hasExactly(list, ['items']);
    expect(list.items.map(({ id }) => id)).toEqual(made.map(({ id }) => id));
    expect(list.items.map(({ chain_version }) => chain_version)).toEqual(
      made.map(({ chain_version }) => chain_version),
    );
    refused(await api.send('GET', `${path}?page=1`), 400, 'page');
  });

  it('is a 409 that names a dialled node without an address; a dial_addr is enough', async () => {
    const { api } = shared;
    const [a, b] = [await createNode(api), await createNode(api)];
    const listen = port();
    const chain = await createChain(api, { hops: [rawHop(a.id, listen), rawHop(b.id, listen)] });
    refused(await api.send('POST', `/api/l4-chains/${chain.id}/deploy`), 409, b.name);
    expect((await plan(chain)).status).toBe(200);
    const hops = [rawHop(a.id, listen), rawHop(b.id, listen, { dial_addr: '192.0.2.8' })];
    await api.ok('PUT', `/api/l4-chains/${chain.id}`, { hops });
    await deploy(api, chain);
  });

  it('makes it impossible to remove an address that another node dials', async () => {
    const { api } = shared;
    const [a, b] = [await createNode(api), await createNode(api, address)];
    const listen = port();
    const chain = await createChain(api, { hops: [rawHop(a.id, listen), rawHop(b.id, listen)] });
    await deploy(api, chain);
    refused(await api.send('PUT', `/api/nodes/${b.id}`, { json: { address: null } }), 409, chain.name);
    await api.ok('PUT', `/api/l4-chains/${chain.id}`, { enabled: false });
    await api.ok('PUT', `/api/nodes/${b.id}`, { address: null });
    refused(await api.send('PUT', `/api/l4-chains/${chain.id}`, { json: { enabled: true } }), 409, b.name);
  });
});

describe('the plan', () => {
  it('lists what a deploy would change, without unchanged nodes, and writes nothing', async () => {
    const { api } = shared;
    const [a, b] = [await createNode(api), await createNode(api, address)];
    const [one, two] = [port(), port()];
    const chain = await createChain(api, { hops: [rawHop(a.id, one)] });
    const first = await plan(chain);
    hasExactly(first.data, ['nodes', 'collisions']);
    expect(first.headers.etag).toBe(`"${chain.version}"`);
    expect(first.data).toEqual({
      nodes: [{ node_id: a.id, added: [`${chain.id}/0`], changed: [], removed: [] }],
      collisions: [],
    });
    await deploy(api, chain);
    expect((await plan(chain)).data).toEqual({ nodes: [], collisions: [] });
    await api.ok('PUT', `/api/l4-chains/${chain.id}`, { hops: [rawHop(a.id, one), rawHop(b.id, two)] });
    const before = await generations(api, [a, b]);
    const second = await plan(chain);
    expect(second.data.nodes.toSorted((x, y) => x.added.length - y.added.length)).toEqual([
      { node_id: a.id, added: [], changed: [`${chain.id}/0`], removed: [] },
      { node_id: b.id, added: [`${chain.id}/1`], changed: [], removed: [] },
    ]);
    expect(await generations(api, [a, b])).toEqual(before);
    await deploy(api, chain);
    await api.ok('PUT', `/api/l4-chains/${chain.id}`, { hops: [rawHop(b.id, two)] });
    const third = (await plan(chain)).data.nodes;
    expect(third).toContainEqual({ node_id: a.id, added: [], changed: [], removed: [`${chain.id}/0`] });
    expect(third).toContainEqual({ node_id: b.id, added: [`${chain.id}/0`], changed: [], removed: [`${chain.id}/1`] });
  });

  it('has an ETag that a deploy accepts as If-Match', async () => {
    const { api } = shared;
    const node = await createNode(api);
    const chain = await createChain(api, { hops: [rawHop(node.id, port())] });
    const etag = String((await plan(chain)).headers.etag);
    const path = `/api/l4-chains/${chain.id}/deploy`;
    await api.ok('PUT', `/api/l4-chains/${chain.id}`, { target: { endpoint: '192.0.2.1:5' } });
    refused(await api.send('POST', path, { headers: { 'if-match': etag } }), 412);
    const now = String((await plan(chain)).headers.etag);
    const answer = await api.send<Deployed>('POST', path, { headers: { 'if-match': now } });
    expect(answer.data.deployment.chain_version).toBe(Number(now.slice(1, -1)));
    expect((await api.send('POST', path, { headers: { 'if-match': '*' } })).status).toBe(200);
  });
});

describe('the generation of a node', () => {
  it('rises at exactly the edits that touch its configuration', async () => {
    const { api } = shared;
    const entry = await createNode(api);
    const exit = await createNode(api, address);
    const bystander = await createNode(api);
    const all = [entry, exit, bystander];
    const upstream = await createUpstream(api);
    const unused = await createUpstream(api);
    const listen = port();
    const chain = await createChain(api, {
      hops: [rawHop(entry.id, listen), rawHop(exit.id, listen)],
      target: { upstream_id: upstream.id },
    });
    let last = await generations(api, all);
    /** Names those of entry, exit and bystander whose generation rises. */
    const touched = async (act: () => Promise<unknown>): Promise<string> => {
      await act();
      const now = await generations(api, all);
      const names = ['entry', 'exit', 'bystander'].filter((_, i) => now[i]! > last[i]!);
      expect(now.every((generation, i) => generation >= last[i]!)).toBe(true);
      last = now;
      return names.join(' ');
    };
    const put = (path: string, json: object) => () => api.ok('PUT', `/api/${path}`, json);
    const [chainPath, upstreamPath] = [`l4-chains/${chain.id}`, `l4-upstreams/${upstream.id}`];
    expect(await touched(put(upstreamPath, { endpoint: '192.0.2.2:80' })), 'upstream of a draft').toBe('');
    expect(await touched(() => deploy(api, chain)), 'deploy').toBe('entry exit');
    expect(await touched(put(upstreamPath, { endpoint: '192.0.2.3:80' })), 'upstream').toBe('exit');
    expect(await touched(put(upstreamPath, { endpoint: '192.0.2.3:80' })), 'upstream, no change').toBe('');
    expect(await touched(put(upstreamPath, { enabled: false })), 'upstream disabled').toBe('exit');
    expect(await touched(put(upstreamPath, { health_check_interval_ms: 500 })), 'interval').toBe('exit');
    expect(await touched(put(`l4-upstreams/${unused.id}`, { enabled: false })), 'unused upstream').toBe('');
    expect(await touched(put(chainPath, { description: 'said' })), 'description').toBe('');
    expect(await touched(put(chainPath, { name: `${chain.name} new` })), 'name of a live chain').toBe('entry exit');
    expect(await touched(put(chainPath, { target: { endpoint: '192.0.2.4:4' } })), 'undeployed edit').toBe('');
    expect(await touched(put(`nodes/${exit.id}`, { address: '192.0.2.78' })), 'address').toBe('entry');
    expect(await touched(put(`nodes/${entry.id}`, { address: '192.0.2.79' })), 'address nobody dials').toBe('');
    expect(await touched(put(`nodes/${exit.id}`, { name: `${exit.name} new`, labels: { a: 'b' } })), 'node name').toBe(
      '',
    );
    expect(await touched(() => api.ok('POST', `/api/nodes/${exit.id}/psk`)), 'psk').toBe('');
    expect(await touched(() => api.ok('POST', `/api/nodes/${bystander.id}/config`)), 'refresh').toBe('bystander');
    const settings = 'settings/connectivity';
    expect(await touched(put(settings, { heartbeat_interval_secs: 11 })), 'heartbeat').toBe('');
    const override = (id: string, multiplex: boolean | null, p?: number) =>
      put(settings, { nodes: [{ node_id: id, multiplex, ...(p === undefined ? {} : { multiplex_port: p }) }] });
    expect(await touched(override(bystander.id, true, port())), 'override').toBe('bystander');
    expect(await touched(put(settings, { multiplex: true, multiplex_port: 19_443 })), 'multiplex').toBe('entry exit');
    expect(await touched(put(settings, { multiplex: true, multiplex_port: 19_443 })), 'multiplex, no change').toBe('');
    expect(await touched(override(bystander.id, null)), 'override removed').toBe('bystander');
    expect(await touched(put(settings, { multiplex: false })), 'multiplex off').toBe('entry exit bystander');
    expect(await touched(put(chainPath, { enabled: false })), 'disable').toBe('entry exit');
    expect(await touched(put(upstreamPath, { enabled: true })), 'upstream of a disabled chain').toBe('');
    expect(await touched(put(chainPath, { enabled: true })), 'enable').toBe('entry exit');
    expect(await touched(() => api.ok('DELETE', `/api/${chainPath}`)), 'delete').toBe('entry exit');
  });

  it('is one more than the revision of the last event that touched the node', async () => {
    const { api } = shared;
    const node = await createNode(api);
    const chain = await createChain(api, { hops: [rawHop(node.id, port())] });
    const { deployment } = await deploy(api, chain);
    const audit = await api.ok<{ items: { position: string }[] }>(
      'GET',
      `/api/audit?resource_id=${chain.id}&action=l4_chain.deploy`,
    );
    const [stream, revision] = audit.items[0]!.position.split('@');
    expect(stream).toBe('svc-fleet');
    expect(deployment.nodes[0]!.generation).toBe(Number(revision) + 1);
    expect((await api.ok<NodeData>('GET', `/api/nodes/${node.id}`)).generation).toBe(Number(revision) + 1);
  });
});

describe('a failed deploy', () => {
  it('leaves no trace', async () => {
    const { api } = shared;
    const node = await createNode(api);
    const chain = await createChain(api, { hops: [rawHop(node.id, port())] });
    refused(await api.send('POST', `/api/l4-chains/${chain.id}/deploy`, { headers: { 'if-match': '"0"' } }), 412);
    expect(await api.ok<Chain>('GET', `/api/l4-chains/${chain.id}`)).toEqual(chain);
    expect(await api.ok('GET', `/api/l4-chains/${chain.id}/deployments`)).toEqual({ items: [] });
  });
});
