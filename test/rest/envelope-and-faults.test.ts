/**
 * `docs/contract/rest.md#envelope` and `docs/contract/rest.md#errors`: three keys on every answer under `/api`, whatever
 * happens; an unexpected fault is logged, not described to the caller.
 */
import { connect, type AddressInfo } from 'node:net';
import fc from 'fast-check';
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import { ServiceError } from '../../src/kernel/errors.js';
import { eventually } from '../support/eventually.js';
import { createManualClock } from '../support/manual-clock.js';
import { operationsOf } from '../support/openapi-document.js';
import { password, startRest, unknownId, type RestFixture } from '../support/rest-fixture.js';

let rest: RestFixture;
let port: number;
beforeAll(async () => {
  rest = await startRest({ trustedProxies: ['127.0.0.0/8'] });
  await rest.app.listen({ host: '127.0.0.1', port: 0 });
  port = (rest.app.server.address() as AddressInfo).port;
});
afterEach(() => vi.restoreAllMocks());
afterAll(() => rest.close());

const envelope = { success: false, data: null, error: expect.stringMatching(/^[a-z_]+: .+/) };

test('any JSON body is answered with an envelope, never with a fault', async () => {
  const operations = operationsOf((await rest.call('GET', '/openapi.json')).json());
  const taking = operations.filter(({ path, body }) => path.startsWith('/api/') && body !== undefined);
  const keys = ['name', 'hops', 'target', 'labels', 'nodes', 'tls', 'payload', '__proto__', 'constructor', 'toString'];
  const value = fc.letrec((tie) => ({
    any: fc.oneof(
      { maxDepth: 4 },
      fc.jsonValue(),
      fc.array(tie('any')),
      fc.dictionary(fc.constantFrom(...keys), tie('any')),
    ),
  })).any;
  const body = fc.oneof(
    value.map((one) => JSON.stringify(one)),
    fc.string(),
  );
  await fc.assert(
    fc.asyncProperty(fc.constantFrom(...taking), body, async ({ method, path }, text) => {
      const answer = await rest.call(method, path.replace('{id}', unknownId), { body: text });
      expect(answer.statusCode).toBeLessThan(500);
      expect(Object.keys(answer.json()).toSorted()).toEqual(['data', 'error', 'success']);
    }),
    { numRuns: 100 },
  );
});

test('an unexpected fault is a 500 without its cause, which is logged under the request id', async () => {
  const fault = new Error('the disk said hunter2');
  vi.spyOn(rest.deps.fleet.nodes, 'list').mockImplementation(() => {
    throw fault;
  });
  vi.spyOn(rest.deps.commands.nodes, 'create').mockRejectedValue(fault);
  for (const call of [rest.call('GET', '/api/nodes'), rest.call('POST', '/api/nodes', { body: { name: 'n' } })]) {
    const answer = await call;
    expect([answer.statusCode, answer.json()]).toEqual([500, envelope]);
    expect(answer.body).not.toContain('hunter2');
    const id = String(answer.headers['x-request-id']);
    expect(rest.logged.find((line) => line.includes(id))).toContain('hunter2');
  }
});

test.each([
  [new ServiceError('unavailable', 'the event store is out of reach; nothing was written'), 503, '1'],
  [new ServiceError('rate_limited', 'too many failures', { hints: { retryAfterSeconds: 12.2 } }), 429, '13'],
  [new ServiceError('conflict', 'name: taken'), 409, undefined],
] as const)('%s is answered with its status and message', async (error, status, retryAfter) => {
  vi.spyOn(rest.deps.commands.nodes, 'create').mockRejectedValue(error);
  const answer = await rest.call('POST', '/api/nodes', { body: { name: 'n' }, undescribed: true });
  expect([answer.statusCode, answer.json().error]).toEqual([status, `${error.code}: ${error.message}`]);
  expect(answer.headers['retry-after']).toBe(retryAfter);
});

describe('over a real socket', () => {
  const authorization = () => `Bearer ${rest.tokenOf('admin')}`;
  const headers = () => ({ authorization: authorization(), 'content-type': 'application/json' });
  const url = () => `http://127.0.0.1:${port}/api/nodes`;

  test('a body that is far too large is answered, not cut off', async () => {
    for (const body of ['x'.repeat(300_000), 'x'.repeat(8_000_000)]) {
      const answer = await fetch(url(), { method: 'POST', headers: headers(), body });
      expect([answer.status, await answer.json()]).toEqual([413, envelope]);
    }
  });

  test('a chunked body without a length that grows too large is answered too', async () => {
    const chunk = new TextEncoder().encode('x'.repeat(64 * 1024));
    const body = new ReadableStream({
      start(controller) {
        for (let at = 0; at < 10; at += 1) controller.enqueue(chunk);
        controller.close();
      },
    });
    const answer = await fetch(url(), { method: 'POST', headers: headers(), body, duplex: 'half' } as RequestInit);
    expect([answer.status, await answer.json()]).toEqual([413, envelope]);
  });

  test('an empty chunked body counts as no body', async () => {
    const head = [`Authorization: ${authorization()}`, 'Transfer-Encoding: chunked', 'Connection: close'];
    const lines = ['POST /api/nodes/x/psk HTTP/1.1', 'Host: a', ...head, '', '0', '', ''];
    expect(await raw(lines.join('\r\n'))).toMatch(/^HTTP\/1\.1 404 [^]*"not_found: /);
  });

  test.each([
    ['a request that is not HTTP', 'hello\r\n\r\n', 400],
    [
      'a request with two lengths',
      'GET /api/nodes HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n',
      400,
    ],
    ['a request with huge headers', `GET /api/nodes HTTP/1.1\r\nHost: a\r\nX-Big: ${'x'.repeat(40_000)}\r\n\r\n`, 431],
    ['a request without Host', 'GET /api/nodes HTTP/1.1\r\nConnection: close\r\n\r\n', 400],
    ['a target without its host', 'GET http:///api/nodes HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n', 401],
    ['a target with a wrong host', 'GET HTTP://a:b/api/x?y HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n', 401],
    ['an unknown expectation', 'GET /api/nodes HTTP/1.1\r\nHost: a\r\nExpect: more\r\nConnection: close\r\n\r\n', 401],
  ])('%s is answered with an envelope', async (_name, lines, status) => {
    const answer = await raw(lines);
    expect(answer).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
    expect(JSON.parse(answer.slice(answer.indexOf('\r\n\r\n') + 4))).toEqual(envelope);
  });

  test('while the server closes, a request in flight is answered and a later one is a 503', async () => {
    const closed = await startRest();
    const { id } = await closed.data('POST', '/api/nodes', { body: { name: 'n' } });
    await closed.app.listen({ host: '127.0.0.1', port: 0 });
    let release = (_ended: boolean): void => undefined;
    const sessionsEnded = vi.spyOn(closed.deps, 'sessionsEnded');
    sessionsEnded.mockReturnValue(new Promise((resolve) => (release = resolve)));
    const token = closed.tokenOf('admin');
    const request = (line: string) => `${line} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${token}\r\n\r\n`;
    let text = '';
    const socket = connect((closed.app.server.address() as AddressInfo).port, '127.0.0.1');
    socket.on('data', (data) => (text += data.toString()));
    const ended = new Promise((resolve) => socket.on('close', resolve));
    socket.write(request(`DELETE /api/nodes/${id}`));
    await eventually(() => sessionsEnded.mock.calls.map(([nodeId]) => nodeId)).toEqual([id]);
    const closing = closed.app.close();
    await eventually(() => closed.app.server.listening).toBe(false);
    socket.write(request('GET /api/nodes'));
    release(true);
    await Promise.all([closing, ended]);
    expect(text.match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 200', 'HTTP/1.1 503']);
    expect(text).toContain('{"success":false,"data":null,"error":"unavailable: ');
    await closed.close();
  });

  function raw(lines: string): Promise<string> {
    return new Promise((resolve, reject) => {
      let text = '';
      const socket = connect(port, '127.0.0.1', () => socket.write(lines));
      socket.setTimeout(10_000, () => socket.destroy(new Error('no answer')));
      socket.on('data', (data) => (text += data.toString()));
      socket.on('error', reject);
      socket.on('close', () => resolve(text));
    });
  }
});

test('sign-ins from one address are limited whatever their outcome', async () => {
  const limited = await startRest({}, createManualClock());
  const right = { username: 'admin', password };
  // Most are refused before a password is looked at, which takes its time.
  const signIns = [right, { ...right, password: 'wrong' }, ...Array.from({ length: 598 }, () => ({})), right];
  const statuses = new Map<number, number>();
  for (const body of signIns) {
    const { statusCode } = await limited.call('POST', '/api/auth/login', { role: 'nobody', body });
    statuses.set(statusCode, (statuses.get(statusCode) ?? 0) + 1);
  }
  expect([...statuses]).toEqual([
    [200, 1],
    [401, 1],
    [400, 598],
    [429, 1],
  ]);
  const answer = await limited.call('POST', '/api/auth/login', { role: 'nobody', body: right });
  expect(answer.json()).toEqual(envelope);
  expect(Number(answer.headers['retry-after'])).toBeGreaterThan(0);
  await limited.close();
});
