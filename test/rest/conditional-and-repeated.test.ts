/** `docs/contract/rest.md#consistency`: ETag and If-Match, Idempotency-Key, positions, request ids. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { startRest } from '../support/rest-client.js';
import type { RestUnderTest } from '../support/rest-client.js';
import { endpoints, nameOf, unknownId, urlOf } from './endpoints.js';

let rest: RestUnderTest;
beforeEach(async () => {
  rest = await startRest();
});
afterEach(() => rest.app.close());

const target = { endpoint: 'a.example:80' };

async function aChain(): Promise<{ nodeId: string; upstreamId: string; chainId: string }> {
  const node = await rest.data('POST', '/api/nodes', { body: { name: 'n' } });
  const upstream = await rest.data('POST', '/api/l4-upstreams', { body: { name: 'u', endpoint: 'a.example:80' } });
  const hops = [{ node_id: node.id, listen_port: 80, outer: 'tcp', security: 'raw' }];
  const chain = await rest.data('POST', '/api/l4-chains', { body: { name: 'c', payload: 'tcp', hops, target } });
  return { nodeId: node.id, upstreamId: upstream.id, chainId: chain.id };
}

describe('ETag and If-Match', () => {
  test('a GET of one sends its version, and never a 304', async () => {
    const { nodeId, upstreamId, chainId } = await aChain();
    const urls = [
      `/api/nodes/${nodeId}`,
      `/api/l4-upstreams/${upstreamId}`,
      `/api/l4-chains/${chainId}`,
      '/api/auth/me',
      '/api/settings/connectivity',
    ];
    for (const url of urls) {
      const answer = await rest.call('GET', url, { headers: { 'if-none-match': '"1"' } });
      expect(answer.statusCode).toBe(200);
      expect(answer.headers['etag']).toBe(`"${answer.json().data.version}"`);
    }
    const plan = await rest.call('GET', `/api/l4-chains/${chainId}/plan`);
    expect(plan.headers['etag']).toBe('"1"');
  });

  test('a PUT goes through with the version, a list with it, or *; else 412 and nothing is written', async () => {
    const { nodeId, upstreamId, chainId } = await aChain();
    const puts = [
      [`/api/nodes/${nodeId}`, 'description'],
      [`/api/l4-chains/${chainId}`, 'description'],
      ['/api/auth/me', 'display_name'],
    ] as const;
    for (const [url, field] of puts) {
      for (const tag of ['"2"', '"0", "7"', 'W/"1"', '"1.0"', '"01"', '"abc"', '""']) {
        const answer = await rest.call('PUT', url, { body: { [field]: 'x' }, headers: { 'if-match': tag } });
        expect([tag, answer.statusCode]).toEqual([tag, 412]);
      }
      for (const [tag, value] of [
        ['"1"', 'a'],
        ['"9","2"', 'b'],
        ['*', 'c'],
      ] as const) {
        const answer = await rest.call('PUT', url, { body: { [field]: value }, headers: { 'if-match': tag } });
        expect([tag, answer.statusCode]).toEqual([tag, 200]);
      }
      expect((await rest.data('GET', url)).version).toBe(4);
    }
    const gone = await rest.call('DELETE', `/api/l4-upstreams/${upstreamId}`, { headers: { 'if-match': '"2"' } });
    expect(gone.statusCode).toBe(412);
    const deleted = await rest.call('DELETE', `/api/l4-upstreams/${upstreamId}`, { headers: { 'if-match': '"1"' } });
    expect([deleted.statusCode, deleted.json()]).toEqual([200, { success: true, data: {}, error: null }]);
    const stale = await rest.call('POST', `/api/l4-chains/${chainId}/deploy`, { headers: { 'if-match': '"1"' } });
    expect(stale.statusCode).toBe(412);
  });

  test('settings that were never saved have nothing that * matches', async () => {
    const url = '/api/settings/connectivity';
    const body = { metrics_interval_secs: 30 };
    expect((await rest.call('PUT', url, { body, headers: { 'if-match': '*' } })).statusCode).toBe(412);
    expect((await rest.call('PUT', url, { body, headers: { 'if-match': '"0"' } })).statusCode).toBe(200);
    expect((await rest.call('PUT', url, { body, headers: { 'if-match': '*' } })).statusCode).toBe(200);
  });

  test.each(endpoints.filter((one) => one.ifMatch === true).map((one) => [nameOf(one), one] as const))(
    'what is no entity tag is a 400: %s',
    async (_name, one) => {
      for (const tag of ['7', '"7', '"1" "2"', '*, "1"', '']) {
        const answer = await rest.call(one.method, urlOf(one, unknownId), {
          headers: { 'if-match': tag },
          ...(one.body === null ? {} : { body: one.body }),
        });
        expect([tag, answer.statusCode, answer.json().error]).toEqual([
          tag,
          400,
          expect.stringContaining('if-match: expected'),
        ]);
      }
    },
  );

  test('a PUT that changes nothing leaves the version', async () => {
    const { nodeId } = await aChain();
    for (const body of [{}, { name: 'n' }]) {
      const answer = await rest.call('PUT', `/api/nodes/${nodeId}`, { body });
      expect([answer.statusCode, answer.json().data.version]).toEqual([200, 1]);
      expect(answer.headers['x-position']).toBe(String(rest.plane.position()));
    }
  });
});

describe('Idempotency-Key', () => {
  const key = (value: string) => ({ 'idempotency-key': value });

  test('a repeated create gives the resource as it now is, without its secret, and writes nothing', async () => {
    const body = { name: 'n' };
    const first = await rest.call('POST', '/api/nodes', { body, headers: key('k') });
    const { id, control_psk } = first.json().data;
    expect(control_psk).toMatch(/^svcpsk1_/);
    await rest.data('PUT', `/api/nodes/${id}`, { body: { name: 'renamed' } });
    const position = rest.plane.position();
    const again = await rest.call('POST', '/api/nodes', { body, headers: key('k') });
    expect([again.statusCode, again.headers['location']]).toEqual([201, `/api/nodes/${id}`]);
    expect(again.json().data).toMatchObject({ id, name: 'renamed', control_psk: null });
    expect(again.headers['x-position']).toBe(String(position));
    expect(rest.plane.position()).toBe(position);
    await rest.data('DELETE', `/api/nodes/${id}`);
    expect((await rest.call('POST', '/api/nodes', { body, headers: key('k') })).statusCode).toBe(404);
  });

  test('the mark is of caller, path, key, and the bytes of the body', async () => {
    const post = (url: string, body: string, role: 'admin' | 'operator', value: string) =>
      rest.call('POST', url, { body, role, headers: key(value) });
    await post('/api/nodes', '{"name":"a"}', 'admin', 'k');
    expect((await post('/api/nodes', '{"name": "a"}', 'admin', 'k')).statusCode).toBe(409);
    await post('/api/nodes', '{"name":"a"}', 'operator', 'k');
    await post('/api/l4-upstreams', '{"name":"a","endpoint":"a:1"}', 'admin', 'k');
    await post('/api/nodes', '{"name":"a"}', 'admin', 'l');
    const marks = rest.plane.contexts.map((one) => one.idempotency);
    expect(new Set(marks.map((mark) => mark?.key_hash)).size).toBe(4);
    for (const mark of marks) {
      expect(mark?.key_hash).toMatch(/^[0-9a-f]{64}$/);
      expect(mark?.body_hash).toMatch(/^[0-9a-f]{64}$/);
    }
  });

  test('a repeated PSK reset, refresh and deploy', async () => {
    const { nodeId, chainId } = await aChain();
    const psk = await rest.data('POST', `/api/nodes/${nodeId}/psk`, { headers: key('p') });
    const again = await rest.data('POST', `/api/nodes/${nodeId}/psk`, { headers: key('p') });
    expect(again).toEqual({ ...psk, control_psk: null });
    const refreshed = await rest.data('POST', `/api/nodes/${nodeId}/config`, { headers: key('p') });
    expect(await rest.data('POST', `/api/nodes/${nodeId}/config`, { headers: key('p') })).toEqual(refreshed);
    const deployed = await rest.data('POST', `/api/l4-chains/${chainId}/deploy`, { headers: key('d') });
    expect(await rest.data('POST', `/api/l4-chains/${chainId}/deploy`, { headers: key('d') })).toEqual(deployed);
  });

  test.each(['', ' ', 'a b', 'a'.repeat(129), 'é'])('%j is a 400', async (value) => {
    const answer = await rest.call('POST', '/api/nodes', { body: { name: 'n' }, headers: key(value) });
    expect([answer.statusCode, answer.json().error]).toEqual([
      400,
      expect.stringContaining('idempotency-key: expected'),
    ]);
    expect(
      (await rest.call('POST', '/api/nodes', { body: { name: 'm' }, headers: key('a'.repeat(128)) })).statusCode,
    ).toBe(201);
  });

  test('it means nothing on a PUT and on the login', async () => {
    const { nodeId } = await aChain();
    await rest.data('PUT', `/api/nodes/${nodeId}`, { body: { name: 'x' }, headers: key('k') });
    expect(rest.plane.contexts.at(-1)?.idempotency).toBeUndefined();
    const body = { username: 'admin', password: 'correct horse battery' };
    expect((await rest.call('POST', '/api/auth/login', { body, headers: key('a b') })).statusCode).toBe(200);
  });
});

describe('positions', () => {
  test('every command tells its position, and whether the read models lag', async () => {
    const { nodeId, chainId, upstreamId } = await aChain();
    const calls = [
      ['PUT', '/api/auth/me', { display_name: 'x' }],
      ['PUT', `/api/nodes/${nodeId}`, { description: 'x' }],
      ['POST', `/api/nodes/${nodeId}/psk`, undefined],
      ['POST', `/api/nodes/${nodeId}/config`, undefined],
      ['PUT', `/api/l4-upstreams/${upstreamId}`, { enabled: false }],
      ['PUT', `/api/l4-chains/${chainId}`, { description: 'x' }],
      ['POST', `/api/l4-chains/${chainId}/deploy`, undefined],
      ['PUT', '/api/settings/connectivity', { metrics_interval_secs: 30 }],
      ['DELETE', `/api/l4-chains/${chainId}`, undefined],
      ['DELETE', `/api/l4-upstreams/${upstreamId}`, undefined],
      ['DELETE', `/api/nodes/${nodeId}`, undefined],
    ] as const;
    let before = rest.plane.position();
    for (const [at, [method, url, body]] of calls.entries()) {
      const lags = at % 2 === 1;
      rest.plane.setLag(lags);
      const answer = await rest.call(method, url, body === undefined ? {} : { body });
      expect([url, answer.statusCode]).toEqual([url, 200]);
      expect(Number(answer.headers['x-position'])).toBeGreaterThan(before);
      expect(answer.headers['x-projection-lag']).toBe(lags ? 'true' : undefined);
      before = rest.plane.position();
    }
  });

  test('a GET waits for x-min-position, and is a 503 when it does not come', async () => {
    const position = rest.plane.position();
    for (const one of endpoints.filter((listed) => listed.method === 'GET' && !listed.path.includes('{id}'))) {
      const get = (value: string) => rest.call('GET', one.path, { headers: { 'x-min-position': value } });
      expect([one.path, (await get(String(position))).statusCode]).toEqual([one.path, 200]);
      const late = await get(String(position + 1));
      expect([one.path, late.statusCode, late.json().error]).toEqual([
        one.path,
        503,
        expect.stringContaining('unavailable: x-min-position'),
      ]);
      for (const bad of ['-1', '1.5', 'x', '', '9007199254740993', '0x10']) {
        expect([bad, (await get(bad)).statusCode]).toEqual([bad, 400]);
      }
    }
  });
});

describe('x-request-id', () => {
  test('a sane one is kept, in the answer and in the command; another is replaced', async () => {
    const given = 'abc-123:4/5@x';
    const answer = await rest.call('POST', '/api/nodes', { body: { name: 'n' }, headers: { 'x-request-id': given } });
    expect(answer.headers['x-request-id']).toBe(given);
    expect(rest.plane.contexts.at(-1)).toMatchObject({ requestId: given, actor: { type: 'user', name: 'admin' } });
    for (const bad of ['a b', 'x'.repeat(129), '<script>', '']) {
      const other = await rest.call('GET', '/api/nope', { role: 'nobody', headers: { 'x-request-id': bad } });
      expect(other.headers['x-request-id']).toMatch(/^[0-9a-f-]{36}$/);
    }
  });
});
