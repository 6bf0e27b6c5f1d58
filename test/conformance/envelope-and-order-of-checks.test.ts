/**
 * The form of every answer, strict bodies, and the order of the checks of a request: `docs/contract/rest.md#envelope`,
 * `docs/contract/rest.md#errors`.
 */
import { connect } from 'node:net';
import { randomUUID } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { createNode, createUpstream, fresh, rawHop } from './support/resources.js';
import { refused } from './support/rest.js';
import { sharedService } from './support/running.js';

const shared = sharedService();

/** Sends raw bytes and returns everything that comes back. */
async function overSocket(text: string): Promise<string> {
  const { hostname, port } = new URL(shared.api.url);
  const socket = connect(Number(port), hostname);
  socket.write(text);
  let received = '';
  for await (const chunk of socket) received += String(chunk);
  return received;
}

describe('the envelope', () => {
  it('is used for the 404 of an unknown path, which without a token is a 401', async () => {
    const { api } = shared;
    refused(await api.send('GET', '/api/nowhere'), 404);
    refused(await api.send('GET', '/api'), 404);
    refused(await api.send('GET', '/api/'), 404);
    refused(await api.send('GET', '/api/nowhere', { token: null }), 401);
    refused(await api.send('GET', '/api/certs'), 404);
    refused(await api.send('GET', '/api/nodes/'), 404);
    refused(await api.send('GET', '/api/NODES'), 404);
  });

  it('is used for a malformed path', async () => {
    const answer = await shared.api.send('GET', '/api/nodes/%zz');
    expect([400, 404]).toContain(answer.status);
  });

  it('is used for a body that is not JSON', async () => {
    const { api } = shared;
    const { host } = new URL(api.url);
    const received = await overSocket(
      `POST /api/nodes HTTP/1.1\r\nhost: ${host}\r\nauthorization: Bearer ${api.token}\r\ncontent-type: application/json\r\n` +
        `content-length: 2\r\nconnection: close\r\n\r\n{"`,
    );
    expect(received).toMatch(/^HTTP\/1\.1 400 /);
    const body = received.slice(received.indexOf('\r\n\r\n') + 4);
    expect(JSON.parse(body)).toMatchObject({ success: false, data: null });
  });

  it('is used for a body that is too large', async () => {
    const { api } = shared;
    const name = 'x'.repeat(256 * 1024);
    const answer = await api.send('POST', '/api/nodes', { json: { name } });
    refused(answer, 413);
    const chunked = await api.send('POST', '/api/nodes', { raw: `{"name":"${'a'.repeat(300_000)}"}` });
    refused(chunked, 413);
  });

  it('is used for a body of 256 KiB and one byte, while exactly 256 KiB are accepted', async () => {
    const { api } = shared;
    const body = `{"name":"${fresh('large')}"}`;
    const answer = await api.send('POST', '/api/nodes', { raw: body.padEnd(256 * 1024, ' ') });
    expect(answer.status).toBe(201);
    refused(await api.send('POST', '/api/nodes', { raw: body.padEnd(256 * 1024 + 1, ' ') }), 413);
  });

  it('comes with the request id of the caller if that is valid, otherwise with a new one', async () => {
    const { api } = shared;
    const taken = await api.send('GET', '/api/auth/me', { headers: { 'x-request-id': 'my-request.1' } });
    expect(taken.headers['x-request-id']).toBe('my-request.1');
    for (const id of ['x'.repeat(2_000), 'with space', 'semi;colon<script>\u00e9']) {
      const made = await api.send('GET', '/api/auth/me', { headers: { 'x-request-id': id } });
      expect(made.headers['x-request-id']).not.toBe(id);
    }
  });
});

describe('the check of a body', () => {
  it('refuses malformed JSON, other types and unknown fields by name', async () => {
    const { api } = shared;
    for (const raw of ['{', 'nonsense', '{"name":}', "{'name':'x'}", '{"name":"x",}']) {
      refused(await api.send('POST', '/api/nodes', { raw }), 400);
    }
    for (const raw of ['[]', '"x"', 'null', '7', 'true']) refused(await api.send('POST', '/api/nodes', { raw }), 400);
    refused(await api.send('POST', '/api/nodes', { json: { name: 5 } }), 400, 'name');
    refused(await api.send('POST', '/api/nodes', { json: { name: 'x', colour: 'red' } }), 400, 'colour');
    refused(await api.send('POST', '/api/nodes', { json: { name: 'x', __proto__x: 1, status: 'online' } }), 400);
    refused(await api.send('POST', '/api/nodes', { raw: '{"name":"x","__proto__":{"a":1}}' }), 400, '__proto__');
    refused(await api.send('POST', '/api/nodes', { raw: '{"name":"x","constructor":1}' }), 400, 'constructor');
    refused(await api.send('POST', '/api/nodes', { json: {} }), 400, 'name');
    refused(await api.send('POST', '/api/nodes'), 400);
    refused(await api.send('PUT', `/api/nodes/${(await createNode(api)).id}`, {}), 400);
  });

  it('names the field by its JSON path', async () => {
    const { api } = shared;
    const node = await createNode(api);
    const chain = (hop: Record<string, unknown>) => ({
      name: fresh('chain'),
      payload: 'tcp',
      hops: [rawHop(node.id, 1000, hop)],
      target: { endpoint: '192.0.2.1:1' },
    });
    refused(await api.send('POST', '/api/l4-chains', { json: chain({ listen_port: 0 }) }), 400, 'hops[0].listen_port');
    refused(
      await api.send('POST', '/api/l4-chains', { json: chain({ listen_port: 65_536 }) }),
      400,
      'hops[0].listen_port',
    );
    refused(await api.send('POST', '/api/l4-chains', { json: chain({ colour: 1 }) }), 400, 'hops[0]', 'colour');
    refused(await api.send('POST', '/api/l4-chains', { json: chain({ dial_addr: null }) }), 400, 'hops[0].dial_addr');
    const named = await api.send('POST', '/api/nodes', { json: { name: 'x', labels: { a: 5 } } });
    refused(named, 400, 'labels.a');
    const unknown = {
      name: fresh('c'),
      payload: 'tcp',
      hops: [rawHop(randomUUID(), 1000)],
      target: { endpoint: '[::1]:1' },
    };
    refused(await api.send('POST', '/api/l4-chains', { json: unknown }), 400, 'hops[0].node_id');
    const target = { ...unknown, hops: [rawHop(node.id, 1000)], target: { upstream_id: randomUUID() } };
    refused(await api.send('POST', '/api/l4-chains', { json: target }), 400, 'target.upstream_id');
  });

  it('refuses a duplicate key at any depth, escaped spellings included', async () => {
    const { api } = shared;
    for (const raw of [
      '{"name":"dup a","name":"dup b"}',
      '{"name":"dup c","n\\u0061me":"dup d"}',
      '{"name":"dup e","labels":{"a":"1","a":"1"}}',
    ]) {
      refused(await api.send('POST', '/api/nodes', { raw }), 400);
    }
    refused(await api.send('POST', '/api/auth/login', { raw: '{"username":"a","username":"b","password":"c"}' }), 400);
    const same = await api.send('POST', '/api/nodes', { raw: `{"name":"${fresh('one')}","labels":{"name":"1"}}` });
    expect(same.status).toBe(201);
  });

  it('refuses another content type with 415 and accepts a charset', async () => {
    const { api } = shared;
    for (const type of ['text/plain', 'application/xml', 'application/x-www-form-urlencoded', 'multipart/form-data']) {
      const headers = { 'content-type': type };
      refused(await api.send('POST', '/api/nodes', { raw: `{"name":"x"}`, headers }), 415);
    }
    refused(await api.send('POST', '/api/nodes', { raw: '{"name":"x"}', headers: { 'content-type': '' } }), 415);
    const headers = { 'content-type': 'Application/JSON; charset=UTF-8' };
    expect((await api.send('POST', '/api/nodes', { raw: `{"name":"${fresh('n')}"}`, headers })).status).toBe(201);
  });

  it('accepts an empty body, with or without a content type, or {} where no body is expected', async () => {
    const { api } = shared;
    const node = await createNode(api);
    const path = `/api/nodes/${node.id}/config`;
    expect((await api.send('POST', path)).status).toBe(200);
    expect((await api.send('POST', path, { headers: { 'content-type': 'application/json' } })).status).toBe(200);
    expect((await api.send('POST', path, { raw: '{}' })).status).toBe(200);
    expect((await api.send('POST', path, { raw: '', headers: { 'content-type': 'text/plain' } })).status).toBe(200);
    refused(await api.send('POST', path, { json: { rules: [] } }), 400, 'rules');
    refused(await api.send('POST', path, { json: [] }), 400);
    refused(await api.send('POST', path, { json: null }), 400);
    refused(await api.send('POST', `/api/nodes/${node.id}/psk`, { json: { a: 1 } }), 400, 'a');
  });

  it('limits names, descriptions, labels and lists', async () => {
    const { api } = shared;
    const send = (json: object) => api.send('POST', '/api/nodes', { json });
    refused(await send({ name: '' }), 400, 'name');
    refused(await send({ name: 'x'.repeat(129) }), 400, 'name');
    expect((await send({ name: 'y'.repeat(128) })).status).toBe(201);
    refused(await send({ name: fresh('n'), description: 'd'.repeat(1_025) }), 400, 'description');
    expect((await send({ name: fresh('n'), description: 'd'.repeat(1_024) })).status).toBe(201);
    const labels = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, i) => [`k${i}`, 'v']));
    refused(await send({ name: fresh('n'), labels: labels(33) }), 400, 'labels');
    expect((await send({ name: fresh('n'), labels: labels(32) })).status).toBe(201);
    const names = (count: number) => Array.from({ length: count }, (_, i) => `a${i}.example`);
    const upstream = (json: object) =>
      api.send('POST', '/api/l4-upstreams', { json: { endpoint: 'a.example:1', ...json } });
    refused(await upstream({ name: fresh('u'), server_names: names(65) }), 400, 'server_names');
    expect((await upstream({ name: fresh('u'), server_names: names(64) })).status).toBe(201);
  });
});

describe('the order of the checks is', () => {
  const none = randomUUID();

  it('401 before an unknown path, a wrong method and a bad body', async () => {
    const { api } = shared;
    for (const token of [null, 'nonsense', `${api.token}x`]) {
      refused(await api.send('GET', '/api/nowhere', { token }), 401);
      refused(await api.send('PATCH', '/api/nodes', { token }), 401);
      refused(await api.send('POST', '/api/nodes', { token, raw: '{' }), 401);
      refused(await api.send('GET', `/api/nodes/${none}`, { token }), 401);
    }
    const basic = await api.send('GET', '/api/auth/me', { token: null, headers: { authorization: 'Basic YTpi' } });
    refused(basic, 401);
  });

  it('405 with Allow on known paths, before content type and body', async () => {
    const { api } = shared;
    const allows = async (method: string, path: string, allow: readonly string[]) => {
      const headers = { 'content-type': 'text/plain' };
      const answer = await api.send(method, path, { raw: 'nonsense', headers });
      refused(answer, 405);
      const allowed = String(answer.headers.allow)
        .split(',')
        .map((name) => name.trim())
        .toSorted();
      expect(
        allowed.filter((name) => name !== 'HEAD' && name !== 'OPTIONS'),
        path,
      ).toEqual(allow.toSorted());
    };
    await allows('DELETE', '/api/nodes', ['GET', 'POST']);
    await allows('PATCH', `/api/nodes/${none}`, ['DELETE', 'GET', 'PUT']);
    await allows('POST', `/api/nodes/${none}`, ['DELETE', 'GET', 'PUT']);
    await allows('PUT', `/api/nodes/${none}/psk`, ['POST']);
    await allows('DELETE', `/api/nodes/${none}/config`, ['GET', 'POST']);
    await allows('PUT', '/api/l4-upstreams', ['GET', 'POST']);
    await allows('PUT', '/api/l4-chains', ['GET', 'POST']);
    await allows('DELETE', `/api/l4-chains/${none}/deploy`, ['POST']);
    await allows('POST', `/api/l4-chains/${none}/plan`, ['GET']);
    await allows('POST', `/api/l4-chains/${none}/deployments`, ['GET']);
    await allows('POST', '/api/settings/connectivity', ['GET', 'PUT']);
    await allows('POST', '/api/audit', ['GET']);
    await allows('DELETE', '/api/auth/me', ['GET', 'PUT']);
    await allows('PUT', '/api/auth/login', ['POST']);
  });

  it('401 before 405 on the login too: only signing in needs no token', async () => {
    const answer = await shared.api.send('DELETE', '/api/auth/login', { token: null });
    refused(answer, 401);
  });

  it('415 before 413 before 400 before 404 of the resource', async () => {
    const { api } = shared;
    const large = `{"name":"${'x'.repeat(300_000)}"}`;
    const text = { 'content-type': 'text/plain' };
    refused(await api.send('PUT', `/api/nodes/${none}`, { raw: large, headers: text }), 415);
    refused(await api.send('PUT', `/api/nodes/${none}`, { raw: large }), 413);
    refused(await api.send('PUT', `/api/nodes/${none}`, { raw: '{' }), 400);
    refused(await api.send('PUT', `/api/nodes/${none}`, { json: { nope: 1 } }), 400, 'nope');
    refused(await api.send('PUT', `/api/nodes/${none}`, { json: { name: 'x' } }), 404);
    refused(await api.send('GET', `/api/nodes/${none}?nope=1`), 400, 'nope');
    refused(await api.send('PUT', '/api/nodes/not-a-uuid', { json: { nope: 1 } }), 400, 'nope');
  });

  it('404 for a malformed id, as for an unknown one', async () => {
    const { api } = shared;
    for (const id of ['not-a-uuid', none, `${none}0`, '%00', '..%2f', 'x'.repeat(500)]) {
      for (const path of [`/api/nodes/${id}`, `/api/l4-upstreams/${id}`, `/api/l4-chains/${id}`]) {
        refused(await api.send('GET', path), 404);
      }
      refused(await api.send('POST', `/api/nodes/${id}/psk`), 404);
      refused(await api.send('POST', `/api/nodes/${id}/config`), 404);
      refused(await api.send('GET', `/api/nodes/${id}/config`), 404);
      refused(await api.send('POST', `/api/l4-chains/${id}/deploy`), 404);
      refused(await api.send('GET', `/api/l4-chains/${id}/plan`), 404);
      refused(await api.send('GET', `/api/l4-chains/${id}/deployments`), 404);
      refused(await api.send('DELETE', `/api/l4-chains/${id}`), 404);
    }
  });

  it('404 before 412 before the 400 of an unknown reference before 409', async () => {
    const { api } = shared;
    const stale = { 'if-match': '"999"' };
    refused(await api.send('PUT', `/api/nodes/${none}`, { json: { name: 'x' }, headers: stale }), 404);
    const [node, other] = [await createNode(api), await createNode(api)];
    const hops = [rawHop(node.id, 4000)];
    const chain = await api.ok<{ id: string }>('POST', '/api/l4-chains', {
      name: fresh('c'),
      payload: 'tcp',
      hops,
      target: { endpoint: '192.0.2.1:1' },
    });
    const dangling = { target: { upstream_id: none } };
    refused(await api.send('PUT', `/api/l4-chains/${chain.id}`, { json: dangling, headers: stale }), 412);
    refused(await api.send('PUT', `/api/l4-chains/${chain.id}`, { json: dangling }), 400, 'target.upstream_id');
    const clash = { name: fresh('c'), payload: 'tcp', hops, ...dangling };
    refused(await api.send('POST', '/api/l4-chains', { json: clash }), 400, 'target.upstream_id');
    refused(await api.send('PUT', `/api/nodes/${other.id}`, { json: { name: node.name }, headers: stale }), 412);
    refused(await api.send('PUT', `/api/nodes/${other.id}`, { json: { name: node.name } }), 409, node.name);
  });

  it('415 before 413 even if the length is only declared', async () => {
    const { api } = shared;
    const { host } = new URL(api.url);
    const head = (type: string) =>
      `POST /api/nodes HTTP/1.1\r\nhost: ${host}\r\nauthorization: Bearer ${api.token}\r\ncontent-type: ${type}\r\n` +
      `content-length: 99999999\r\nconnection: close\r\n\r\n`;
    expect(await overSocket(head('application/json'))).toMatch(/^HTTP\/1\.1 413 /);
    expect(await overSocket(head('text/plain'))).toMatch(/^HTTP\/1\.1 415 /);
  });
});

describe('the check of a query', () => {
  it('refuses unknown and repeated parameters, and values out of range', async () => {
    const { api } = shared;
    await createUpstream(api);
    for (const list of ['nodes', 'l4-upstreams', 'l4-chains']) {
      for (const query of [
        'page=0',
        'page=-1',
        'page=1.5',
        'page=x',
        'page=',
        'page_size=0',
        'page_size=501',
        'page_size=abc',
        'sort=colour',
        'sort=',
        'sort=--name',
        'sort=Name',
        'limit=3',
        'offset=1',
        'page=1&page=2',
        'Page=1',
      ]) {
        refused(await api.send('GET', `/api/${list}?${query}`), 400, query.split('=')[0]!);
      }
      expect((await api.send('GET', `/api/${list}?page=1&page_size=500&sort=-updated_at&q=z`)).status).toBe(200);
    }
    for (const query of ['sort=name', 'q=x', 'from=yesterday', 'to=1', 'page_size=501', 'resource_type=nonsense']) {
      refused(await api.send('GET', `/api/audit?${query}`), 400, query.split('=')[0]!);
    }
    refused(await api.send('GET', '/api/settings/connectivity?x=1'), 400, 'x');
    refused(await api.send('GET', '/api/auth/me?x=1'), 400, 'x');
    refused(await api.send('POST', '/api/nodes?x=1', { json: { name: 'x' } }), 400, 'x');
    refused(await api.send('GET', '/api/nodes?status=asleep'), 400, 'status');
    refused(await api.send('GET', '/api/nodes?label=:nokey'), 400, 'label');
  });
});
