/**
 * `docs/contract/rest.md#envelope`, the order of the checks: 401, 404 of the path, 405, 403, 415, 413, 400, 404 of the
 * resource, 412, references (400), 409.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { password, startRest } from '../support/rest-fixture.js';
import type { RestFixture } from '../support/rest-fixture.js';
import { endpoints, nameOf, unknownId, urlOf } from './endpoints.js';

let rest: RestFixture;
beforeAll(async () => {
  rest = await startRest();
});
afterAll(() => rest.close());

const big = JSON.stringify({ name: 'x'.repeat(256 * 1024) });
const text = { 'content-type': 'text/plain' };
const guarded = endpoints.filter((one) => one.access !== 'login');
const writing = endpoints.filter((one) => one.method !== 'GET');
const withId = endpoints.filter((one) => one.path.includes('{id}'));

function expectError(answer: { statusCode: number; json(): unknown }, status: number, error: RegExp): void {
  expect(answer.json()).toEqual({ success: false, data: null, error: expect.stringMatching(error) });
  expect(answer.statusCode).toBe(status);
}

describe('401 comes before everything', () => {
  test.each(guarded.map((one) => [nameOf(one), one] as const))('%s', async (_name, one) => {
    const call = { role: 'nobody' as const, body: big, headers: text };
    const answer = await rest.call(one.method, `${urlOf(one, 'no id')}?nope=1`, call);
    expectError(answer, 401, /^unauthenticated: /);
    expect(answer.headers['www-authenticate']).toBe('Bearer');
  });

  test.each(['/api', '/api/', '/api/nope', '/api/auth/accounts', '/api/nodes/', '/api/%zz', '/api/auth/login/'])(
    'also for the unknown path %s',
    async (url) => {
      expectError(await rest.call('GET', url, { role: 'nobody' }), 401, /^unauthenticated: /);
      expectError(await rest.call('GET', url), 404, /^not_found: no such path$/);
    },
  );

  test.each([
    'Bearer',
    'Bearer ',
    'Basic <token>',
    'Bearer a.b.c',
    'Bearer <token>x',
    'Bearer <token> x',
    `Bearer ${'a'.repeat(9000)}`,
  ])('also with the authorization %j', async (scheme) => {
    const authorization = scheme.replace('<token>', rest.tokenOf('admin'));
    const answer = await rest.call('GET', '/api/nodes', { role: 'nobody', headers: { authorization } });
    expectError(answer, 401, /^unauthenticated: /);
  });

  test('except for the login, and only as POST', async () => {
    expectError(await rest.call('GET', '/api/auth/login', { role: 'nobody' }), 401, /^unauthenticated: /);
    const body = { username: 'admin', password };
    expect((await rest.call('POST', '/api/auth/login', { role: 'nobody', body })).statusCode).toBe(200);
  });
});

describe('an unknown path is a 404', () => {
  test.each([
    'GET /api/dashboard/statistics',
    'GET /api/credential',
    'POST /api/audit/x/undo',
    'PUT /api/auth/passwords',
    'GET /api/nodes/x/diagnostics',
    'GET /nope',
    'GET /Healthz',
  ])('%s', async (line) => {
    const [method = '', url = ''] = line.split(' ');
    const answer = await rest.call(method, url, { role: 'viewer', body: method === 'GET' ? undefined : big });
    expectError(answer, 404, /^not_found: /);
  });

  test.each(['GET /api/nodes/nothing', 'DELETE /api/nodes/nothing'])(
    '%s is a 404 for an id that is not a UUID',
    async (line) => {
      const [method = '', url = ''] = line.split(' ');
      expectError(await rest.call(method, url), 404, /^not_found: /);
    },
  );
});

test('a path is known by what the router makes of it, and its token is asked for', async () => {
  for (const url of ['/%61pi/nodes', '/api/%6eodes', '/%61pi/auth/users']) {
    expectError(await rest.call('GET', url, { role: 'nobody' }), 401, /^unauthenticated: /);
  }
  for (const url of ['/api/nodes/', '/api/nodes//config', '/api/nodes/ports/']) {
    expectError(await rest.call('DELETE', url, { role: 'viewer' }), 404, /^not_found: no such path$/);
  }
});

describe('405 with Allow comes before 403 and every later check', () => {
  const paths = [...new Set(endpoints.map((one) => one.path))];
  test.each(paths)('%s', async (path) => {
    const allowed = endpoints.filter((one) => one.path === path).map((one) => one.method);
    for (const method of ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'PROPFIND']) {
      if (allowed.some((one) => one === method)) continue;
      const answer = await rest.call(method, `${urlOf({ path }, 'no id')}?nope`, { role: 'viewer', headers: text });
      expect([method, answer.statusCode]).toEqual([method, 405]);
      const allow = String(answer.headers['allow']).split(', ');
      expect(allow.toSorted()).toEqual(allowed.toSorted());
      if (method !== 'HEAD') expectError(answer, 405, /^method_not_allowed: /);
    }
  });
});

describe('403 comes before the checks of the body', () => {
  test.each(endpoints.filter((one) => one.access === 'operator').map((one) => [nameOf(one), one] as const))(
    '%s',
    async (_name, one) => {
      const answer = await rest.call(one.method, `${urlOf(one, 'no id')}?nope=1`, {
        role: 'viewer',
        body: big,
        headers: text,
      });
      expectError(answer, 403, /^forbidden: expected the role operator/);
    },
  );

  test.each(endpoints.filter((one) => one.access === 'admin').map((one) => [nameOf(one), one] as const))(
    '%s',
    async (_name, one) => {
      for (const role of ['viewer', 'operator'] as const) {
        const answer = await rest.call(one.method, `${urlOf(one, 'no id')}?nope=1`, { role, body: big, headers: text });
        expectError(answer, 403, /^forbidden: expected the role admin$/);
      }
    },
  );

  test.each(endpoints.filter((one) => one.access === 'anyone').map((one) => [nameOf(one), one] as const))(
    '%s is open to a viewer',
    async (_name, one) => {
      const answer = await rest.call(one.method, urlOf(one), {
        role: 'viewer',
        ...(one.body === null ? {} : { body: one.body }),
      });
      expect(answer.statusCode).not.toBe(403);
    },
  );
});

describe('415, then 413, then 400, then 404', () => {
  test.each(writing.map((one) => [nameOf(one), one] as const))('%s', async (_name, one) => {
    const url = `${urlOf(one, 'no id')}?nope=1`;
    for (const type of [
      'text/plain',
      'application/x-www-form-urlencoded',
      'application/json; charset=latin1',
      'nonsense',
    ]) {
      const answer = await rest.call(one.method, url, { body: big, headers: { 'content-type': type } });
      expectError(answer, 415, /^unsupported_media_type: /);
    }
    const zipped = await rest.call(one.method, url, { body: big, headers: { 'content-encoding': 'gzip' } });
    expectError(zipped, 415, /^unsupported_media_type: /);
    // A document may be larger.
    const tooLarge = url.startsWith('/api/fleet/') ? big.padEnd(20 * 1024 * 1024 + 1) : big;
    expectError(await rest.call(one.method, url, { body: tooLarge }), 413, /^payload_too_large: /);
    expectError(await rest.call(one.method, url, { body: '{' }), 400, /^invalid_request: body: /);
    expectError(await rest.call(one.method, url, { body: one.body ?? {} }), 400, /^invalid_request: nope: /);
    if (!one.path.includes('{id}')) return;
    const answer = await rest.call(one.method, urlOf(one, 'no%20id'), one.body === null ? {} : { body: one.body });
    expectError(answer, 404, /^not_found: /);
  });

  test('a body of exactly the limit is accepted', async () => {
    const padding = ' '.repeat(256 * 1024 - '{"nope":1}'.length);
    expectError(
      await rest.call('POST', '/api/nodes', { body: `{"nope":1}${padding}` }),
      400,
      /^invalid_request: nope: /,
    );
    expectError(await rest.call('POST', '/api/nodes', { body: `{"nope":1}${padding} ` }), 413, /^payload_too_large: /);
  });
});

describe('404 of the resource in the path comes before 412', () => {
  test.each(withId.map((one) => [nameOf(one), one] as const))('%s', async (_name, one) => {
    const ids = [unknownId, 'x', '%zz', unknownId.toUpperCase().replace('0', 'A'), 'a'.repeat(2000)];
    for (const id of ids) {
      const headers: Record<string, string> = one.ifMatch === true ? { 'if-match': '"7"' } : {};
      const answer = await rest.call(one.method, urlOf(one, id), {
        headers,
        ...(one.body === null ? {} : { body: one.body }),
      });
      expectError(answer, 404, /^not_found: /);
    }
  });
});

test('412 comes before references, and references before conflicts', async () => {
  const node = await rest.data('POST', '/api/nodes', { body: { name: 'first' } });
  const aChain = (name: string, listen_port: number) => {
    const hops = [{ node_id: node.id, listen_port, outer: 'tcp', security: 'raw' }];
    const definition = { name, payload: 'tcp', hops, target: { endpoint: 'a.example:80' } };
    return rest.data('POST', '/api/l4-chains', { body: definition });
  };
  const chain = await aChain('one', 80);
  await aChain('two', 81);
  const body = { name: 'TWO', target: { upstream_id: unknownId } };
  const url = `/api/l4-chains/${chain.id}`;
  expectError(await rest.call('PUT', url, { body, headers: { 'if-match': '"9"' } }), 412, /^precondition_failed: /);
  expectError(await rest.call('PUT', url, { body }), 400, /^invalid_request: target\.upstream_id: /);
  expectError(await rest.call('PUT', url, { body: { name: 'TWO' } }), 409, /^conflict: /);
});
