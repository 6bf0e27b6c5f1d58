/** `docs/contract/rest.md#envelope`: 401, 404 of the path, 405, 403, 415, 413, 400, 404 of the resource, 412, references, 409. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startRest } from '../support/rest-client.js';
import type { RestUnderTest } from '../support/rest-client.js';
import { endpoints, nameOf, unknownId, urlOf } from './endpoints.js';

let rest: RestUnderTest;
beforeAll(async () => {
  rest = await startRest();
});
afterAll(() => rest.app.close());

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

  test.each(['/api', '/api/', '/api/nope', '/api/auth/users', '/api/nodes/', '/api/%zz', '/api/auth/login/'])(
    'of unknown paths too: %s',
    async (url) => {
      expectError(await rest.call('GET', url, { role: 'nobody' }), 401, /^unauthenticated: /);
      expectError(await rest.call('GET', url), 404, /^not_found: no such path$/);
    },
  );

  test.each([
    'Bearer',
    'Bearer ',
    'Basic token.admin',
    'Bearer token.nobody',
    'Bearer token.admin x',
    `Bearer ${'a'.repeat(9000)}`,
  ])('with the authorization %j', async (authorization) => {
    const answer = await rest.call('GET', '/api/nodes', { role: 'nobody', headers: { authorization } });
    expectError(answer, 401, /^unauthenticated: /);
  });

  test('the login alone is open, and only as POST', async () => {
    expectError(await rest.call('GET', '/api/auth/login', { role: 'nobody' }), 401, /^unauthenticated: /);
    const body = { username: 'admin', password: 'correct horse battery' };
    expect((await rest.call('POST', '/api/auth/login', { role: 'nobody', body })).statusCode).toBe(200);
  });
});

describe('404 of the path', () => {
  test.each([
    'GET /api/dashboard/stats',
    'GET /api/credentials',
    'POST /api/audit/x/revert',
    'PUT /api/auth/password',
    'GET /api/nodes/x/diagnostics',
    'GET /nope',
    'GET /Healthz',
  ])('%s', async (line) => {
    const [method = '', url = ''] = line.split(' ');
    const answer = await rest.call(method, url, { role: 'viewer', body: method === 'GET' ? undefined : big });
    expectError(answer, 404, /^not_found: /);
  });

  test.each(['GET /api/nodes/ports', 'GET /api/nodes/links', 'DELETE /api/nodes/ports'])(
    '%s is a node without an id',
    async (line) => {
      const [method = '', url = ''] = line.split(' ');
      expectError(await rest.call(method, url), 404, /^not_found: /);
    },
  );
});

describe('405 with Allow comes before 403 and all that follows', () => {
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

describe('403 comes before the body is looked at', () => {
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
    expectError(await rest.call(one.method, url, { body: big }), 413, /^payload_too_large: /);
    expectError(await rest.call(one.method, url, { body: '{' }), 400, /^invalid_request: body: /);
    expectError(await rest.call(one.method, url, { body: one.body ?? {} }), 400, /^invalid_request: nope: /);
    if (!one.path.includes('{id}')) return;
    const answer = await rest.call(one.method, urlOf(one, 'no%20id'), one.body === null ? {} : { body: one.body });
    expectError(answer, 404, /^not_found: /);
  });

  test('a body of exactly the limit is read', async () => {
    const padding = ' '.repeat(256 * 1024 - '{"nope":1}'.length);
    expectError(
      await rest.call('POST', '/api/nodes', { body: `{"nope":1}${padding}` }),
      400,
      /^invalid_request: nope: /,
    );
    expectError(await rest.call('POST', '/api/nodes', { body: `{"nope":1}${padding} ` }), 413, /^payload_too_large: /);
  });
});

describe('404 of the resource', () => {
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

test('412 comes before references, references before conflicts', async () => {
  const node = await rest.data('POST', '/api/nodes', { body: { name: 'first' } });
  const hops = [{ node_id: node.id, listen_port: 80, outer: 'tcp', security: 'raw' }];
  const target = { endpoint: 'a.example:80' };
  const chain = await rest.data('POST', '/api/l4-chains', { body: { name: 'one', payload: 'tcp', hops, target } });
  await rest.data('POST', '/api/l4-chains', { body: { name: 'two', payload: 'tcp', hops, target } });
  const body = { name: 'TWO', target: { upstream_id: unknownId } };
  const url = `/api/l4-chains/${chain.id}`;
  expectError(await rest.call('PUT', url, { body, headers: { 'if-match': '"9"' } }), 412, /^precondition_failed: /);
  expectError(await rest.call('PUT', url, { body }), 400, /^invalid_request: target\.upstream_id: /);
  expectError(await rest.call('PUT', url, { body: { name: 'TWO' } }), 409, /^conflict: /);
});
