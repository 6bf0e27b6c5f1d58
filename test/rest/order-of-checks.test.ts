/**
 * `docs/contract/rest.md#envelope`, the order of the checks: what is special about paths, tokens and references. The walk
 * (`../walker`) proves the order on every operation.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { password, startRest, unknownId, type RestFixture } from '../support/rest-fixture.js';

let rest: RestFixture;
beforeAll(async () => {
  rest = await startRest();
});
afterAll(() => rest.close());

function expectError(answer: { statusCode: number; json(): unknown }, status: number, error: RegExp): void {
  expect(answer.json()).toEqual({ success: false, data: null, error: expect.stringMatching(error) });
  expect(answer.statusCode).toBe(status);
}

describe('401 comes before everything', () => {
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

test('a path is known by what the router makes of it, and its token is asked for', async () => {
  for (const url of ['/%61pi/nodes', '/api/%6eodes', '/%61pi/auth/users']) {
    expectError(await rest.call('GET', url, { role: 'nobody' }), 401, /^unauthenticated: /);
  }
  for (const url of ['/api/nodes/', '/api/nodes//config', '/api/nodes/ports/']) {
    expectError(await rest.call('DELETE', url, { role: 'viewer' }), 404, /^not_found: no such path$/);
  }
});

test('a body of exactly the limit is accepted', async () => {
  const padding = ' '.repeat(256 * 1024 - '{"nope":1}'.length);
  expectError(await rest.call('POST', '/api/nodes', { body: `{"nope":1}${padding}` }), 400, /^invalid_request: nope: /);
  expectError(await rest.call('POST', '/api/nodes', { body: `{"nope":1}${padding} ` }), 413, /^payload_too_large: /);
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
