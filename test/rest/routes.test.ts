/** Legacy routes over REST: which fields are required, which are refused, what is the default (`docs/contract/rest.md#legacy-routes`). */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startRest, type JsonData, type RestFixture } from '../support/rest-fixture.js';

let rest: RestFixture;
let a: JsonData;
let b: JsonData;
beforeAll(async () => {
  rest = await startRest();
  a = await rest.data('POST', '/api/nodes', { body: { name: 'a', address: 'a.example' } });
  b = await rest.data('POST', '/api/nodes', { body: { name: 'b', address: '2001:db8::b' } });
});
afterAll(() => rest.close());

let count = 0;
/** A body that is accepted, with a name and ports of its own. */
const route = (more: object = {}): Record<string, unknown> => {
  count += 1;
  const hops = [
    { node_id: a.id, listen_port: 20_000 + count },
    { node_id: b.id, listen_port: 20_000 + count },
  ];
  return { name: `route ${count}`, host: 'www.example', hops, backend: '192.0.2.1:80', ...more };
};
const create = (body: object): Promise<JsonData> => rest.data('POST', '/api/routes', { body });
async function refused(method: string, url: string, body: object, status: number, error: RegExp): Promise<void> {
  const answer = await rest.call(method, url, { body });
  expect([answer.statusCode, answer.json().error]).toEqual([status, expect.stringMatching(error)]);
}

describe('a create', () => {
  test('fills in the defaults and answers 201 with the whole route, in canonical form', async () => {
    const body = route({ host: 'WWW.Example', backend: '[2001:DB8:0::1]:80' });
    const answer = await rest.call('POST', '/api/routes', { body });
    expect(answer.statusCode).toBe(201);
    const { data } = answer.json();
    expect(answer.headers.location).toBe(`/api/routes/${data.id}`);
    expect(data).toEqual({
      id: expect.any(String),
      name: body['name'],
      host: 'www.example',
      path_prefix: '/',
      enabled: true,
      hops: (body['hops'] as object[]).map((hop) => ({ listen_addr: '0.0.0.0', ...hop })),
      backend: '[2001:db8::1]:80',
      warnings: [],
      managed_by: null,
      created_at: expect.any(String),
      updated_at: data.created_at,
      version: 1,
    });
    expect({ ...(await rest.data('GET', `/api/routes/${data.id}`)), warnings: [] }).toEqual(data);
  });

  test.each<[string, object, string]>([
    ['a host with a port', { host: 'www.example:80' }, 'host'],
    ['a host with a path', { host: 'www.example/x' }, 'host'],
    ['a wildcard as host', { host: '*.example' }, 'host'],
    ['a path prefix without a slash', { path_prefix: 'api' }, 'path_prefix'],
    ['a path prefix with a query', { path_prefix: '/api?x' }, 'path_prefix'],
    ['a path prefix with a space', { path_prefix: '/a b' }, 'path_prefix'],
    ['a path prefix with half an escape', { path_prefix: '/a%2' }, 'path_prefix'],
    ['a backend without a port', { backend: '192.0.2.1' }, 'backend'],
    ['a backend with the port 0', { backend: '192.0.2.1:0' }, 'backend'],
    ['a backend that is an address of the web', { backend: 'http://192.0.2.1:80' }, 'backend'],
  ])('refuses %s', async (_, more, field) => {
    await refused('POST', '/api/routes', route(more), 400, new RegExp(`^invalid_request: .*\\b${field}\\b`));
  });

  test.each<[string, object, string]>([
    ['with a name as address', { listen_addr: 'localhost' }, 'listen_addr'],
    ['of a node that does not exist', { node_id: '00000000-0000-4000-8000-000000000000' }, 'node_id'],
    ['with a dial_addr, which only chains have', { dial_addr: 'a.example' }, 'dial_addr'],
    ['with a security, which only chains have', { security: 'raw' }, 'security'],
    ['with an outer transport, which only chains have', { outer: 'tcp' }, 'outer'],
  ])('refuses a hop %s', async (_, more, field) => {
    const hops = [
      { node_id: a.id, listen_port: 1 },
      { node_id: b.id, listen_port: 1, ...more },
    ];
    await refused('POST', '/api/routes', route({ hops }), 400, new RegExp(`^invalid_request: hops\\[1\\].*${field}`));
  });
});

describe('the hops of a route', () => {
  test('are listed with the names and the state of their nodes, and where each leads', async () => {
    const { id } = await create(route({ hops: [a, b].map((node) => ({ node_id: node.id, listen_port: 443 })) }));
    const hop = (index: number, node: JsonData, next_hop: string) => ({
      index,
      node_id: node.id,
      node_name: node.name,
      listen_addr: '0.0.0.0',
      listen_port: 443,
      next_hop,
      node_status: 'pending',
    });
    const expected = [hop(0, a, '[2001:db8::b]:443'), hop(1, b, '192.0.2.1:80')];
    expect(await rest.data('GET', `/api/routes/${id}/hops`)).toEqual({ items: expected });
    const agent = await rest.connect(a.id);
    const states = async (): Promise<string[]> =>
      (await rest.data('GET', `/api/routes/${id}/hops`)).items.map((item: JsonData) => item.node_status);
    expect(await states()).toEqual(['online', 'pending']);
    await agent.disconnect();
    expect(await states()).toEqual(['offline', 'pending']);
  });

  test('have no next hop while a disabled route leads to a node without an address', async () => {
    const silent = await rest.data('POST', '/api/nodes', { body: { name: 'silent' } });
    const hops = [a, silent].map((node) => ({ node_id: node.id, listen_port: 444 }));
    const { id } = await create(route({ hops, enabled: false }));
    const { items } = await rest.data('GET', `/api/routes/${id}/hops`);
    expect(items.map((item: JsonData) => item.next_hop)).toEqual(['', '192.0.2.1:80']);
    await refused(
      'PUT',
      `/api/routes/${id}`,
      { enabled: true },
      409,
      /^conflict: hops\[1\]\.node_id: the node "silent"/,
    );
  });
});
