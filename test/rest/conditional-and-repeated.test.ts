/** `docs/contract/rest.md#consistency`: ETag and If-Match, Idempotency-Key, positions, request ids. */
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import { password, startRest } from '../support/rest-fixture.js';
import type { RestFixture } from '../support/rest-fixture.js';
import { endpoints, nameOf, unknownId, wholeUrlOf } from './endpoints.js';

let rest: RestFixture;
const restForAll = (): void => {
  beforeAll(async () => {
    rest = await startRest();
  });
  afterAll(() => rest.close());
};
afterEach(() => vi.restoreAllMocks());

const target = { endpoint: 'a.example:80' };
let made = 0;

/** A chain over one node, and an upstream that it does not use. */
async function aChain(): Promise<{ nodeId: string; nodeName: string; upstreamId: string; chainId: string }> {
  made += 1;
  const node = await rest.data('POST', '/api/nodes', { body: { name: `n${made}`, issue_psk: false } });
  const upstream = await rest.data('POST', '/api/l4-upstreams', { body: { name: `u${made}`, ...target } });
  const hops = [{ node_id: node.id, listen_port: 80, outer: 'tcp', security: 'raw' }];
  const body = { name: `c${made}`, payload: 'tcp', hops, target };
  const chain = await rest.data('POST', '/api/l4-chains', { body });
  return { nodeId: node.id, nodeName: node.name, upstreamId: upstream.id, chainId: chain.id };
}

describe('ETag and If-Match', () => {
  restForAll();

  test('a GET of one resource sends its version as ETag, and never a 304', async () => {
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

  test('a write succeeds with the version, a list that holds it, or *; any other tag is a 412 and writes nothing', async () => {
    const { nodeId, upstreamId, chainId } = await aChain();
    const puts = [
      [`/api/nodes/${nodeId}`, 'description'],
      [`/api/l4-chains/${chainId}`, 'description'],
      ['/api/auth/me', 'display_name'],
    ] as const;
    for (const [url, field] of puts) {
      const before = await rest.position();
      for (const tag of ['"2"', '"0", "7"', 'W/"1"', '"1.0"', '"01"', '"abc"', '""']) {
        const answer = await rest.call('PUT', url, { body: { [field]: 'x' }, headers: { 'if-match': tag } });
        expect([tag, answer.statusCode]).toEqual([tag, 412]);
      }
      expect(await rest.position()).toBe(before);
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
    const mismatch = await rest.call('DELETE', `/api/l4-upstreams/${upstreamId}`, { headers: { 'if-match': '"2"' } });
    expect(mismatch.statusCode).toBe(412);
    const deleted = await rest.call('DELETE', `/api/l4-upstreams/${upstreamId}`, { headers: { 'if-match': '"1"' } });
    expect([deleted.statusCode, deleted.json()]).toEqual([200, { success: true, data: {}, error: null }]);
    const stale = await rest.call('POST', `/api/l4-chains/${chainId}/deploy`, { headers: { 'if-match': '"1"' } });
    expect(stale.statusCode).toBe(412);
  });

  test('* does not match settings that were never saved', async () => {
    const url = '/api/settings/connectivity';
    const body = { metrics_interval_secs: 30 };
    expect((await rest.call('PUT', url, { body, headers: { 'if-match': '*' } })).statusCode).toBe(412);
    expect((await rest.call('PUT', url, { body, headers: { 'if-match': '"0"' } })).statusCode).toBe(200);
    expect((await rest.call('PUT', url, { body, headers: { 'if-match': '*' } })).statusCode).toBe(200);
  });

  test.each(endpoints.filter((one) => one.ifMatch === true).map((one) => [nameOf(one), one] as const))(
    '%s answers 400 to an If-Match that holds no entity tag',
    async (_name, one) => {
      for (const tag of ['7', '"7', '"1" "2"', '*, "1"', '']) {
        const answer = await rest.call(one.method, wholeUrlOf(one, unknownId), {
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

  test('a PUT that changes nothing leaves the version and writes nothing', async () => {
    const { nodeId, nodeName } = await aChain();
    const before = await rest.position();
    for (const body of [{}, { name: nodeName }]) {
      const answer = await rest.call('PUT', `/api/nodes/${nodeId}`, { body });
      expect([answer.statusCode, answer.json().data.version]).toEqual([200, 1]);
      expect(answer.headers['x-position']).toBe(String(before));
    }
    expect(await rest.position()).toBe(before);
  });
});

describe('Idempotency-Key', () => {
  restForAll();
  const key = (value: string) => ({ 'idempotency-key': value });

  test('a repeated create answers with the resource as it now is, without its secret, and writes nothing', async () => {
    const body = { name: 'repeated' };
    const first = await rest.call('POST', '/api/nodes', { body, headers: key('k') });
    const { id, control_psk } = first.json().data;
    expect(control_psk).toMatch(/^svcpsk1_/);
    await rest.data('PUT', `/api/nodes/${id}`, { body: { name: 'renamed' } });
    const position = await rest.position();
    const again = await rest.call('POST', '/api/nodes', { body, headers: key('k') });
    expect([again.statusCode, again.headers['location']]).toEqual([201, `/api/nodes/${id}`]);
    expect(again.json().data).toMatchObject({ id, name: 'renamed', control_psk: null });
    expect(again.headers['x-position']).toBe(first.headers['x-position']);
    expect(await rest.position()).toBe(position);
    await rest.data('DELETE', `/api/nodes/${id}`);
    expect((await rest.call('POST', '/api/nodes', { body, headers: key('k') })).statusCode).toBe(404);
  });

  test('a key counts per caller, path and body bytes; the log holds only hashes', async () => {
    const post = (url: string, body: string, role: 'admin' | 'operator', value: string) =>
      rest.call('POST', url, { body, role, headers: key(value) });
    const logged = (await rest.log()).length;
    expect((await post('/api/nodes', '{"name":"a"}', 'admin', 'key')).statusCode).toBe(201);
    expect((await post('/api/nodes', '{"name": "a"}', 'admin', 'key')).statusCode).toBe(409);
    expect((await post('/api/nodes', '{"name":"b"}', 'operator', 'key')).statusCode).toBe(201);
    expect((await post('/api/l4-upstreams', '{"name":"a","endpoint":"a:1"}', 'admin', 'key')).statusCode).toBe(201);
    expect((await post('/api/nodes', '{"name":"c"}', 'admin', 'other')).statusCode).toBe(201);
    const marks = (await rest.log()).slice(logged).flatMap((event) => event.metadata.idempotency ?? []);
    expect(new Set(marks.map((mark) => mark.key_hash)).size).toBe(4);
    for (const mark of marks) {
      expect(mark.key_hash).toMatch(/^[0-9a-f]{64}$/);
      expect(mark.body_hash).toMatch(/^[0-9a-f]{64}$/);
    }
  });

  test('a repeated PSK reset, refresh or deploy answers as the first one did, less the secret', async () => {
    const { nodeId, chainId } = await aChain();
    const psk = await rest.data('POST', `/api/nodes/${nodeId}/psk`, { headers: key('p') });
    const again = await rest.data('POST', `/api/nodes/${nodeId}/psk`, { headers: key('p') });
    expect(again).toEqual({ ...psk, control_psk: null });
    const refreshed = await rest.data('POST', `/api/nodes/${nodeId}/config`, { headers: key('p') });
    expect(await rest.data('POST', `/api/nodes/${nodeId}/config`, { headers: key('p') })).toEqual(refreshed);
    const deployed = await rest.data('POST', `/api/l4-chains/${chainId}/deploy`, { headers: key('d') });
    expect(await rest.data('POST', `/api/l4-chains/${chainId}/deploy`, { headers: key('d') })).toEqual(deployed);
  });

  test.each(['', ' ', 'a b', 'a'.repeat(129), 'é'])('the key %j is a 400', async (value) => {
    const answer = await rest.call('POST', '/api/nodes', { body: { name: 'unkeyed' }, headers: key(value) });
    expect([answer.statusCode, answer.json().error]).toEqual([
      400,
      expect.stringContaining('idempotency-key: expected'),
    ]);
  });

  test('a key of 128 characters is accepted', async () => {
    const body = { name: 'long key' };
    expect((await rest.call('POST', '/api/nodes', { body, headers: key('a'.repeat(128)) })).statusCode).toBe(201);
  });

  test('a PUT and the login ignore the header', async () => {
    const { nodeId } = await aChain();
    for (const name of ['x', 'y']) {
      await rest.data('PUT', `/api/nodes/${nodeId}`, { body: { name }, headers: key('ignored') });
      const event = (await rest.log()).at(-1);
      expect([event?.type, event?.metadata.idempotency]).toEqual(['NodeUpdated', undefined]);
    }
    const body = { username: 'admin', password };
    expect((await rest.call('POST', '/api/auth/login', { body, headers: key('a b') })).statusCode).toBe(200);
  });
});

describe('positions', () => {
  restForAll();

  test('every command answers its position, and whether the read models lag', async () => {
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
    let before = await rest.position();
    for (const [index, [method, url, body]] of calls.entries()) {
      const lags = index % 2 === 1;
      if (lags) vi.spyOn(rest.followers, 'applied').mockResolvedValueOnce(false);
      const answer = await rest.call(method, url, body === undefined ? {} : { body });
      expect([url, answer.statusCode]).toEqual([url, 200]);
      expect(Number(answer.headers['x-position'])).toBeGreaterThan(before);
      expect(answer.headers['x-projection-lag']).toBe(lags ? 'true' : undefined);
      before = await rest.position();
      expect(answer.headers['x-position']).toBe(String(before));
    }
  });

  test('a GET waits for x-min-position, and is a 503 when it does not come', async () => {
    const position = await rest.position();
    const get = (path: string, value: string) => rest.call('GET', path, { headers: { 'x-min-position': value } });
    const check = async (path: string): Promise<void> => {
      expect([path, (await get(path, String(position))).statusCode]).toEqual([path, 200]);
      const late = await get(path, String(position + 1));
      expect([path, late.statusCode, late.json().error]).toEqual([
        path,
        503,
        expect.stringContaining('unavailable: x-min-position'),
      ]);
      for (const bad of ['-1', '1.5', 'x', '', '9007199254740993', '0x10']) {
        expect([bad, (await get(path, bad)).statusCode]).toEqual([bad, 400]);
      }
    };
    const gets = endpoints.filter((one) => one.method === 'GET' && !one.path.includes('{id}'));
    await Promise.all(gets.map((one) => check(one.path)));
  });
});

describe('x-request-id', () => {
  restForAll();

  test('a valid one is used in the answer and in the log; an invalid one is replaced', async () => {
    const given = 'abc-123:4/5@x';
    const answer = await rest.call('POST', '/api/nodes', { body: { name: 'n' }, headers: { 'x-request-id': given } });
    expect(answer.headers['x-request-id']).toBe(given);
    const { metadata } = (await rest.log()).at(-1) ?? {};
    expect(metadata).toMatchObject({ request_id: given, actor: { type: 'user', name: 'admin' } });
    for (const bad of ['a b', 'x'.repeat(129), '<script>', '']) {
      const other = await rest.call('GET', '/api/nope', { role: 'nobody', headers: { 'x-request-id': bad } });
      expect(other.headers['x-request-id']).toMatch(/^[0-9a-f-]{36}$/);
    }
  });
});
