/** The fleet as a file over REST: export and plan (`docs/contract/automation.md#the-fleet-as-a-file`). */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { realityOver, startRest, type Call, type JsonData, type RestFixture } from '../support/rest-fixture.js';

let rest: RestFixture;
beforeAll(async () => {
  rest = await startRest();
});
afterAll(() => rest.close());

const plan = (document: string, flags: object = {}, call: Call = {}): Promise<JsonData> =>
  rest.data('POST', '/api/fleet/plan', { ...call, body: { document, ...flags } });
const refused = async (document: string, call: Call = {}): Promise<JsonData> => {
  const answer = await rest.call('POST', '/api/fleet/plan', { ...call, body: { document } });
  return [answer.statusCode, answer.json().error];
};
const exported = (query = ''): Promise<JsonData> => rest.data('GET', `/api/fleet/export${query}`);

const wholeFleet = `
svc: 1
set: null
nodes:
  edge-1: {address: 192.0.2.10, labels: {region: eu, node: x}}
  relay-1: {address: 192.0.2.20, description: "of: all"}
upstreams:
  web: {endpoint: "203.0.113.5:443", server_names: [b.example, a.example]}
credentials:
  relay-key: {key_type: x25519}
  web-cert: {key_type: tls_cert, self_signed: {common_name: web.example}}
  cover: {key_type: reality, x25519: relay-key, server_names: [www.example.com], short_ids: [a1b2], target_host: www.example.com, target_port: 443}
chains:
  front:
    payload: tcp
    hops: [{node: edge-1, listen_port: 443, outer: tcp, security: tls, credential: web-cert}, {node: relay-1, listen_port: 8443, outer: tcp, security: reality, credential: cover}]
    target: {upstream: web}
    deploy: true
routes: {}
policies: [{node: edge-1, transport: tcp, listen_addr: 0.0.0.0, listen_port: 443, priority_order: [tls, raw]}]
l3_networks:
  backbone:
    credential: cover
    server_name: www.example.com
    members: [{node: edge-1, addresses: [10.0.0.1/24], routes: []}, {node: relay-1, addresses: [10.0.0.2/24], routes: []}]
    tunnels: [{listener_node: edge-1, listen_addr: 0.0.0.0, listen_port: 4443, connector_node: relay-1}]
`;

describe('a plan', () => {
  it('lists what a new fleet takes, in an order that can be carried out, and the rules that its nodes get', async () => {
    const { steps, nodes, obstacles, commands, etag } = await plan(wholeFleet);
    expect(obstacles).toEqual([]);
    expect(steps.map(({ action, resource }: JsonData) => `${action} ${resource.type} ${resource.name}`)).toEqual([
      'create node edge-1',
      'create node relay-1',
      'create l4_upstream web',
      'create credential relay-key',
      'create credential web-cert',
      'create credential cover',
      'create l4_chain front',
      'create l3_network backbone',
      'create listener_policy edge-1/tcp/0.0.0.0/443',
      'deploy l4_chain front',
    ]);
    expect(nodes.map(({ node_name, added }: JsonData) => [node_name, added.length])).toEqual([
      ['edge-1', 2],
      ['relay-1', 2],
    ]);
    expect(commands).toBe(1);
    expect((await plan(wholeFleet)).etag).toBe(etag);
    expect((await plan(wholeFleet, { prune: true })).etag).not.toBe(etag);
    expect((await rest.data('GET', '/api/nodes')).total).toBe(0);
  });

  it('names every mistake of text and shape with its line and column, then the wrong references', async () => {
    expect(
      await refused(
        'svc: 1\nnodes:\n  a: {adress: x, name: b}\n  A: {}\nchains:\n  c: {hops: [{node_id: 1}]}\nother: 1\n',
      ),
    ).toEqual([400, expect.stringMatching(/^invalid_request: 4:3 nodes\.A: expected each key once, "a" is the same$/)]);
    const [status, error] = await refused(
      'svc: 2\nnodes:\n  a: {adress: x, name: b}\nupstreams:\n  u: {endpoint: 5}\nother: 1\n',
    );
    expect(status).toBe(400);
    expect(error.split('; ')).toEqual([
      'invalid_request: 1:6 svc: expected the number 1',
      '3:7 nodes.a.adress: not a field of this document',
      '3:18 nodes.a.name: not a field of this document',
      '5:17 upstreams.u.endpoint: expected host:port, with an IPv6 address in brackets',
      '6:1 other: not a field of this document, expected one of svc, set, policies, settings, nodes, upstreams, ' +
        'credentials, chains, routes, l3_networks',
    ]);
    expect(
      await refused(
        'svc: 1\nnodes: {a: {}}\nchains:\n  c: {payload: tcp, hops: [{node: b, listen_port: 1, outer: tcp, security: raw}], target: {upstream: none}}\n',
      ),
    ).toEqual([
      400,
      'invalid_request: 4:35 chains.c.hops[0].node: expected the name of a node, there is none named "b"; ' +
        '4:102 chains.c.target.upstream: expected the name of a l4_upstream, there is none named "none"',
    ]);
  });

  it.each([
    ['a merge key', 'a: &x {svc: 1}\n<<: *x\n', /2:1 <<: expected no merge key/],
    ['a tag', 'svc: !!binary aGk=\n', /1:\d+ svc: expected no tag/],
    ['a loop', 'svc: 1\nnodes: &n {a: *n}\n', /2:\d+ nodes\.a: expected no loop/],
    ['no YAML', 'svc: [1\n', /expected YAML/],
    ['two documents', 'svc: 1\n---\nsvc: 1\n', /expected YAML/],
    [
      'what expands too far',
      `svc: 1\na: &a [${'xxxxxxxxxx, '.repeat(50)}]\nb: &b [${'*a, '.repeat(50)}]\nc: [${'*b, '.repeat(50)}]\n`,
      /expected aliases that expand/,
    ],
  ])('refuses %s', async (_, document, sentence) => {
    expect(await refused(document)).toEqual([400, expect.stringMatching(sentence)]);
  });

  it('takes JSON as it takes YAML, and finds in it what YAML may not have', async () => {
    const { steps } = await plan(JSON.stringify(parse(wholeFleet)));
    expect(steps).toEqual((await plan(wholeFleet)).steps);
    expect(
      await refused('{"svc": 1, "nodes": {"a": {}, "b": {"labels": {"x": "1", "X": "2", "\\u0078": "3"}}}}'),
    ).toEqual([400, 'invalid_request: 1:68 nodes.b.labels.x: expected each key once']);
    expect(await refused('{"svc": 1, "nodes": {"a": {}, "A": {}}}')).toEqual([
      400,
      expect.stringContaining('1:31 nodes.A: '),
    ]);
    expect(await refused('{"svc": 1, "__proto__": {}}')).toEqual([400, expect.stringContaining('1:12 __proto__: ')]);
  });

  it('takes YAML with flags in the query, and no secrets from viewers', async () => {
    const answer = await rest.call('POST', '/api/fleet/plan?prune=true&max_deletes=3', {
      body: wholeFleet,
      headers: { 'content-type': 'application/yaml' },
    });
    expect(answer.json().data.steps).toHaveLength(10);
    const key = Buffer.alloc(32, 7).toString('base64url');
    const withSecret = `svc: 1\ncredentials: {k: {key_type: x25519, private_key: ${key}}}\n`;
    expect(await refused(withSecret, { role: 'viewer' })).toEqual([403, expect.any(String)]);
    const without = await plan('svc: 1\ncredentials: {k: {key_type: x25519}}\n', {}, { role: 'viewer' });
    expect(without.steps).toMatchObject([{ action: 'create', changes: expect.any(Array) }]);
  });
});

it('one plan runs at a time on an instance and four wait; a further one is a 429 that says when to come again', async () => {
  const { fleetFile } = rest.deps.commands as { fleetFile: { plan: (request: unknown) => Promise<unknown> } };
  const { plan: planned } = fleetFile;
  let go = (): void => undefined;
  const going = new Promise<void>((resolve) => (go = resolve));
  fleetFile.plan = (request) => going.then(() => planned(request));
  try {
    const sent = Array.from({ length: 6 }, () =>
      rest.call('POST', '/api/fleet/plan', { body: { document: 'svc: 1' } }),
    );
    const first = await Promise.race(sent);
    expect([first.statusCode, first.headers['retry-after']]).toEqual([429, expect.stringMatching(/^[0-9]+$/)]);
    go();
    const statuses = (await Promise.all(sent)).map(({ statusCode }) => statusCode);
    expect(statuses.sort()).toEqual([200, 200, 200, 200, 200, 429]);
  } finally {
    go();
    fleetFile.plan = planned;
  }
});

describe('an export', () => {
  it('with a label called << or with signs of YAML reads back as a plan without steps', async () => {
    const labels = { '<<': '*a', '&a': '- b', '#': '', 'e\u0301': '{', '? x': '~', '"': "'" };
    const { id } = await rest.data('POST', '/api/nodes', { body: { name: '<<', labels } });
    const [{ document }] = (await exported('?set=')).documents;
    expect(await plan(document)).toMatchObject({ steps: [], obstacles: [] });
    const twice = { name: 'b', labels: { 'e\u0301': '1', é: '2' } };
    expect((await rest.call('POST', '/api/nodes', { body: twice })).json().error).toBe(
      'invalid_request: labels.é: expected each key once, found it twice',
    );
    await rest.call('DELETE', `/api/nodes/${id}`);
  });

  it('leaves out secrets, defaults and ids, and reads back as a plan without steps', async () => {
    const post = (path: string, body: object): Promise<JsonData> => rest.data('POST', path, { body });
    const node = await post('/api/nodes', { name: 'edge: 1', address: '192.0.2.1', labels: { node: 'true' } });
    const other = await post('/api/nodes', { name: 'true', address: '192.0.2.2' });
    const upstream = await post('/api/l4-upstreams', { name: 'web', endpoint: '203.0.113.5:443' });
    await rest.data('PUT', `/api/l4-upstreams/${upstream.id}`, { body: { enabled: false } });
    const keys = await post('/api/credentials', { name: 'keys', key_type: 'x25519' });
    const cert = await post('/api/credentials', {
      name: 'cert',
      key_type: 'tls_cert',
      self_signed: { common_name: 'a.example', subject_alt_names: ['a.example', '*.b.example'] },
    });
    const masked = realityOver(keys.id, 'cover', ['www.example.com'], { short_ids: ['a1b2', ''] });
    const cover = await post('/api/credentials', masked);
    const chain = await post('/api/l4-chains', {
      name: 'front',
      payload: 'tcp',
      hops: [
        { node_id: node.id, listen_port: 443, outer: 'tcp', security: 'tls', credential_id: cert.id },
        {
          node_id: other.id,
          listen_addr: '::',
          listen_port: 8443,
          outer: 'quic',
          security: 'reality',
          credential_id: cover.id,
        },
      ],
      target: { upstream_id: upstream.id },
    });
    await rest.data('POST', `/api/l4-chains/${chain.id}/deploy`);
    await post('/api/routes', {
      name: 'shop',
      host: 'shop.example',
      hops: [{ node_id: node.id, listen_port: 80 }],
      backend: 'backend.example:80',
    });
    await post('/api/l3-networks', {
      name: 'net',
      credential_id: cover.id,
      server_name: 'www.example.com',
      members: [
        { node_id: node.id, addresses: ['10.0.0.1/24'], routes: [] },
        { node_id: other.id, addresses: ['10.0.0.2/24'], routes: [], interface_name: 'tun0' },
      ],
      tunnels: [{ listener_node_id: node.id, listen_addr: '0.0.0.0', listen_port: 4443, connector_node_id: other.id }],
    });
    for (const listenPort of [1443, 443]) {
      await rest.data('PUT', '/api/nodes/ports/policies', {
        body: { nodeId: node.id, transport: 'tcp', listenAddr: '0.0.0.0', listenPort, priorityOrder: ['raw'] },
      });
    }
    await rest.data('PUT', '/api/settings/connectivity', {
      body: { heartbeat_interval_secs: 5, nodes: [{ node_id: node.id, multiplex: true, multiplex_port: 7443 }] },
    });

    const { documents, cursor } = await exported();
    expect(cursor).toEqual(expect.any(String));
    expect(documents.map(({ set }: JsonData) => set)).toEqual(['default', null]);
    for (const { document } of documents) {
      expect(document).not.toMatch(/[0-9a-f]{8}-[0-9a-f]{4}-/);
      expect(await plan(document, { prune: true })).toMatchObject({ steps: [], nodes: [], obstacles: [] });
    }
    expect(documents[1].document).toBe(`svc: 1
set: null
nodes:
  "edge: 1": {address: 192.0.2.1, labels: {node: "true"}}
  "true": {address: 192.0.2.2}
upstreams:
  web: {endpoint: "203.0.113.5:443", enabled: false}
credentials:
  cert: {key_type: tls_cert, self_signed: {common_name: a.example, subject_alt_names: [a.example, "*.b.example"]}}
  cover: {key_type: reality, x25519: keys, server_names: [www.example.com], short_ids: [a1b2, ""], target_host: www.example.com, target_port: 443}
  keys: {key_type: x25519}
chains:
  front: {payload: tcp, hops: [{node: "edge: 1", listen_port: 443, outer: tcp, security: tls, credential: cert}, {node: "true", listen_port: 8443, outer: quic, security: reality, credential: cover, listen_addr: "::"}], target: {upstream: web}, deploy: true}
routes:
  shop: {host: shop.example, hops: [{node: "edge: 1", listen_port: 80}], backend: "backend.example:80"}
l3_networks:
  net: {credential: cover, server_name: www.example.com, members: [{node: "edge: 1", addresses: ["10.0.0.1/24"], routes: []}, {node: "true", addresses: ["10.0.0.2/24"], routes: [], interface_name: tun0}], tunnels: [{listener_node: "edge: 1", listen_addr: 0.0.0.0, listen_port: 4443, connector_node: "true"}]}
policies:
  - {node: "edge: 1", transport: tcp, listen_addr: 0.0.0.0, listen_port: 443, priority_order: [raw, reality, tls, noise]}
  - {node: "edge: 1", transport: tcp, listen_addr: 0.0.0.0, listen_port: 1443, priority_order: [raw, reality, tls, noise]}
`);
    expect(await exported('?set=')).toMatchObject({ documents: [documents[1]] });
    expect(await exported('?set=none')).toMatchObject({ documents: [] });
  });
});
