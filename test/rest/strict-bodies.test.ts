/**
 * `docs/contract/rest.md#errors`: bodies are strict, a refusal names the field by its JSON path and repeats no value.
 */
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { operationsOf } from '../support/openapi-document.js';
import { password, startRest, type RestFixture } from '../support/rest-fixture.js';

let rest: RestFixture;
beforeAll(async () => {
  rest = await startRest();
});
afterAll(() => rest.close());

const id = '6f1c1f4e-8d3a-4b5e-9c39-1d2f3a4b5c6d';
const pin = Buffer.alloc(32, 7).toString('base64');
const hop = { node_id: id, listen_port: 80, outer: 'tcp', security: 'raw' };
const chain = { name: 'c', payload: 'tcp', hops: [hop], target: { endpoint: 'a.example:80' } };
const upstream = { name: 'u', endpoint: 'a.example:80' };
const other = '6f1c1f4e-8d3a-4b5e-9c39-1d2f3a4b5c6e';

const refusals: readonly (readonly [string, object, string])[] = [
  ['POST /api/nodes', { name: '\ud800' }, 'name: expected a string of 1 to 128 characters'],
  ['POST /api/nodes', { name: 'n', address: 'a b' }, 'address: expected a host name or a unicast IP address'],
  ['POST /api/nodes', { name: 'n', address: '224.0.0.1' }, 'address: expected a host name or a unicast IP address'],
  ['POST /api/nodes', { name: 'n', labels: { '': 'x' } }, 'labels'],
  [
    'POST /api/nodes',
    { name: 'n', labels: Object.fromEntries(Array.from({ length: 33 }, (_, at) => [`k${at}`, ''])) },
    'labels: expected at most 32 labels',
  ],
  ['POST /api/l4-upstreams', { name: 'u', endpoint: 'a.example' }, 'endpoint: expected host:port'],
  [
    'POST /api/l4-upstreams',
    { ...upstream, health_check_interval_ms: 99 },
    'health_check_interval_ms: expected an integer from 100 to 3600000',
  ],
  ['POST /api/l4-upstreams', { ...upstream, server_names: ['*.a.b'] }, 'server_names[0]: expected a DNS name'],
  ['POST /api/l4-upstreams', { ...upstream, server_names: ['a.b', 'A.B'] }, 'server_names[1]: expected each name once'],
  [
    'POST /api/l4-upstreams',
    { ...upstream, tls: { server_name: 'a.b', spki_pins_sha256: [pin.slice(1)] } },
    'tls.spki_pins_sha256[0]: expected base64 of 32 bytes',
  ],
  [
    'POST /api/l4-chains',
    { ...chain, hops: Array.from({ length: 9 }, () => hop) },
    'hops: expected a list of 1 to 8 entries',
  ],
  [
    'POST /api/l4-chains',
    { ...chain, hops: [{ ...hop, listen_addr: 'a.example' }] },
    'hops[0].listen_addr: expected a unicast IPv4 or IPv6 address',
  ],
  [
    'POST /api/l4-chains',
    { ...chain, hops: [hop, hop] },
    'hops[1].node_id: expected each node at most once in a chain',
  ],
  [
    'POST /api/l4-chains',
    { ...chain, hops: [{ ...hop, credential_id: other }] },
    'hops[0].credential_id: expected none with security raw',
  ],
  [
    'POST /api/l4-chains',
    { ...chain, hops: [{ ...hop, max_streams: 5 }] },
    'hops[0].max_streams: expected none unless outer is quic',
  ],
  [
    'POST /api/l4-chains',
    { ...chain, hops: [{ ...hop, server_names: ['a.*.b'] }] },
    'hops[0].server_names[0]: expected a DNS name',
  ],
  [
    'POST /api/l4-chains',
    { ...chain, hops: [{ ...hop, dial_addr: 'a:80' }] },
    'hops[0].dial_addr: expected a host name',
  ],
  [
    'POST /api/l4-chains',
    { ...chain, target: {} },
    'target: expected either {"upstream_id"} or {"endpoint", "tls"?, "reality"?}',
  ],
  ['POST /api/l4-chains', { ...chain, target: { upstream_id: id, endpoint: 'a:1' } }, 'target: expected either'],
  ['POST /api/l4-chains', { ...chain, target: { endpoint: 'a' } }, 'target.endpoint: expected host:port'],
  [
    'POST /api/l4-chains',
    {
      ...chain,
      payload: 'udp',
      hops: [{ ...hop, outer: 'udp' }],
      target: { endpoint: 'a:1', tls: { server_name: 'a.b', spki_pins_sha256: [pin] } },
    },
    'target.tls: expected none when payload is udp',
  ],
  [
    'POST /api/l4-chains',
    { ...chain, payload: 'udp', hops: [{ ...hop, outer: 'udp', server_names: ['a.b'] }] },
    'hops[0].server_names: expected none with outer udp',
  ],
  [
    'PUT /api/settings/connectivity',
    { heartbeat_interval_secs: 10, offline_after_secs: 19 },
    'offline_after_secs: expected at least 2',
  ],
  [
    'PUT /api/settings/connectivity',
    { nodes: [{ node_id: id, multiplex: null, multiplex_port: 5 }] },
    'nodes[0].multiplex_port: expected none',
  ],
  ['PUT /api/auth/me', { email: 'nobody' }, 'email: expected an e-mail address'],
];

test.each(refusals)('%s refuses %j and names the field', async (line, body, sentence) => {
  const [method = '', path = ''] = line.split(' ');
  const before = await rest.position();
  const answer = await rest.call(method, path.replace('{id}', id), { body });
  expect(answer.json()).toEqual({
    success: false,
    data: null,
    error: expect.stringContaining(`invalid_request: ${sentence}`),
  });
  expect(answer.statusCode).toBe(400);
  expect(await rest.position()).toBe(before);
});

test('an endpoint that takes no body accepts an empty one and {}, and refuses any other', async () => {
  const operations = operationsOf((await rest.call('GET', '/openapi.json')).json());
  const bodiless = operations.filter(
    ({ method, path, body }) => method !== 'GET' && path.startsWith('/api/') && body === undefined,
  );
  expect(bodiless.length).toBeGreaterThan(20);
  // They share the check: every form is sent to the first, and one of each kind to the others.
  for (const [index, { method, path }] of bodiless.entries()) {
    const listener = path.endsWith('/policies') ? `?nodeId=${id}&transport=tcp&listenAddr=0.0.0.0&listenPort=80` : '';
    const url = path.replace('{id}', id) + listener;
    const forms = [
      { body: {} },
      {},
      { body: '', headers: { 'content-type': 'application/json' } },
      { headers: { 'content-type': 'text/plain' } },
      { body: ' { } ' },
    ];
    for (const call of index === 0 ? forms : forms.slice(0, 2)) {
      // A sign-out ends the token of its request.
      if (path === '/api/auth/logout') {
        const { token } = await rest.data('POST', '/api/auth/login', {
          role: 'nobody',
          body: { username: 'admin', password },
        });
        const headers = { ...('headers' in call ? call.headers : {}), authorization: `Bearer ${token}` };
        expect((await rest.call(method, url, { ...call, role: 'nobody', headers })).statusCode).toBe(200);
      } else {
        // The service itself is always there.
        const expected = path.startsWith('/api/service/') ? [200, 409] : [404];
        const { statusCode } = await rest.call(method, url, call);
        expect([method, path, expected.includes(statusCode)]).toEqual([method, path, true]);
      }
    }
    for (const body of index === 0 ? ['{"rules":[]}', '[]', 'null', '1'] : ['{"rules":[]}']) {
      const answer = await rest.call(method, url, { body });
      const where = body.startsWith('{') ? 'rules: not a field of this request,' : 'body:';
      expect([method, path, answer.json().error]).toEqual([
        method,
        path,
        `invalid_request: ${where} expected no body, or {}`,
      ]);
    }
  }
});

test('a duplicate key is refused with its path, also when it is escaped or deeply nested', async () => {
  const bodies: readonly (readonly [string, string])[] = [
    ['{"name":"a","name":"a"}', 'name'],
    ['{"name":"a","n\\u0061me":"b"}', 'name'],
    ['{"name":"a","labels":{"x":"1","y":"2","x":"3"}}', 'labels.x'],
    ['{"name":"a","labels":{"__proto__":"1"}}', 'labels.__proto__'],
    ['{"hops":[{},{"a":[{"b":1,"b":2}]}]}', 'hops[1].a[0].b'],
  ];
  for (const [body, path] of bodies) {
    const answer = await rest.call('POST', '/api/nodes', { body });
    expect(answer.json().error).toMatch(`invalid_request: ${path}: `);
    expect(answer.statusCode).toBe(400);
  }
});

test('a body that nests too deep, or has more in one list or object than any request, is refused with its path', async () => {
  const keys = Array.from({ length: 20_000 }, (_, index) => `"k${index}":"v"`).join(',');
  const bodies: readonly (readonly [string, string])[] = [
    [`{"labels":{"a":${'['.repeat(100_000)}${']'.repeat(100_000)}}}`, 'labels.a[0][0]'],
    [`{"labels":${'{"a":'.repeat(20_000)}1${'}'.repeat(20_000)}}`, 'labels.a.a'],
    [`{"name":"a","labels":{${keys}}}`, 'labels: expected at most'],
    [`{${keys}}`, 'body: expected at most'],
    [`{"hops":[${'{},'.repeat(80_000)}{}]}`, 'hops: expected at most'],
    [`{"hops":[${`{"a":[${'1,'.repeat(2_000)}1]},`.repeat(50)}1]}`, 'body: expected at most'],
  ];
  for (const [body, path] of bodies) {
    const answer = await rest.call('POST', '/api/nodes', { body });
    expect(answer.json().error.slice(0, 80)).toContain(`invalid_request: ${path}`);
    expect(answer.statusCode).toBe(400);
  }
  const fits = `{"name":"a","x":${'['.repeat(63)}${']'.repeat(63)}}`;
  expect((await rest.call('POST', '/api/nodes', { body: fits })).json().error).toBe(
    'invalid_request: x: not a field of this request',
  );
});

test('no text has so many combining marks that bringing it into a normal form takes long', async () => {
  const marks = `a${'\u0315\u0300'.repeat(4_000)}`;
  const document = `svc: 1\nset: "${marks}"\nnodes: {"${marks}": {}}\nroutes: {a: {"${marks}": 1}}\n`;
  const bodies: readonly (readonly [string, object])[] = [
    ['/api/nodes', { name: 'a\u0300'.repeat(20_000) }],
    ['/api/auth/login', { [marks]: 1 }],
    ['/api/auth/login', { username: marks, password: marks }],
    ['/api/auth/users', { username: 'ada', password: marks, role: 'viewer' }],
    ['/api/nodes', { name: marks }],
    ['/api/nodes', { name: 'n', labels: { [marks]: marks } }],
    ['/api/nodes/labels', { node_ids: [id], set: { [marks]: marks }, remove: [marks] }],
    ['/api/join-tokens', { name: 'j', name_prefix: marks }],
    ['/api/fleet/plan', { document }],
    ['/api/fleet/plan', { document: JSON.stringify({ svc: 1, nodes: { [marks]: {} } }) }],
  ];
  const normalize = vi.spyOn(String.prototype, 'normalize');
  for (const [url, body] of bodies) expect((await rest.call('POST', url, { body })).statusCode, url).toBe(400);
  const longest = Math.max(0, ...normalize.mock.contexts.map((text) => String(text).length));
  normalize.mockRestore();
  expect(longest).toBeLessThan(1_000);
});
