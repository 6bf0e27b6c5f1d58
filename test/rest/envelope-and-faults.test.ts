/** `docs/contract/rest.md`, Envelope and Errors: three keys on every answer under `/api`, whatever happens; faults are not described. */
import { connect } from 'node:net';
import type { AddressInfo } from 'node:net';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ServiceError } from '../../src/kernel/errors.js';
import { startRest } from '../support/rest-client.js';
import type { RestUnderTest } from '../support/rest-client.js';
import { endpoints, urlOf } from './endpoints.js';

let rest: RestUnderTest;
let port: number;
beforeAll(async () => {
  rest = await startRest({ trustedProxies: ['127.0.0.0/8'] });
  await rest.app.listen({ host: '127.0.0.1', port: 0 });
  port = (rest.app.server.address() as AddressInfo).port;
});
afterAll(() => rest.app.close());

const envelope = { success: false, data: null, error: expect.stringMatching(/^[a-z_]+: .+/) };

test('whatever JSON comes, the answer is an envelope and never a fault', async () => {
  const taking = endpoints.filter((one) => one.body !== null);
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
    fc.asyncProperty(fc.constantFrom(...taking), body, async (one, text) => {
      const answer = await rest.call(one.method, urlOf(one), { body: text });
      expect(answer.statusCode).toBeLessThan(500);
      expect(Object.keys(answer.json()).toSorted()).toEqual(['data', 'error', 'success']);
    }),
    { numRuns: 300 },
  );
});

test('an object nested a hundred thousand deep is a 400', async () => {
  const body = `{"name":${'['.repeat(100_000)}${']'.repeat(100_000)}}`;
  expect((await rest.call('POST', '/api/nodes', { body })).statusCode).toBe(400);
});

test('an unexpected fault is a 500 without its cause, which the log has under the request id', async () => {
  rest.plane.fail(new Error('the disk said hunter2'));
  for (const call of [rest.call('GET', '/api/nodes'), rest.call('POST', '/api/nodes', { body: { name: 'n' } })]) {
    const answer = await call;
    expect([answer.statusCode, answer.json()]).toEqual([500, envelope]);
    expect(answer.body).not.toContain('hunter2');
    const id = String(answer.headers['x-request-id']);
    expect(rest.plane.logged.find((line) => line.includes(id))).toContain('hunter2');
  }
  rest.plane.fail(undefined);
});

test.each([
  [new ServiceError('unavailable', 'the event store is out of reach; nothing was written'), 503, undefined],
  [new ServiceError('rate_limited', 'too many failures', { hints: { retryAfterSeconds: 12.2 } }), 429, '13'],
  [new ServiceError('conflict', 'name: taken'), 409, undefined],
] as const)('%s', async (error, status, retryAfter) => {
  rest.plane.fail(error);
  const answer = await rest.call('POST', '/api/nodes', { body: { name: 'n' } });
  rest.plane.fail(undefined);
  expect([answer.statusCode, answer.json().error]).toEqual([status, `${error.code}: ${error.message}`]);
  expect(answer.headers['retry-after']).toBe(retryAfter);
});

describe('over a real socket', () => {
  const headers = { authorization: 'Bearer token.admin', 'content-type': 'application/json' };
  const url = () => `http://127.0.0.1:${port}/api/nodes`;

  test('a body that is far too large is answered, not cut', async () => {
    for (const body of ['x'.repeat(300_000), 'x'.repeat(8_000_000)]) {
      const answer = await fetch(url(), { method: 'POST', headers, body });
      expect([answer.status, await answer.json()]).toEqual([413, envelope]);
    }
  });

  test('so is one that comes in chunks, announced by nothing', async () => {
    const chunk = new TextEncoder().encode('x'.repeat(64 * 1024));
    const body = new ReadableStream({
      start(controller) {
        for (let at = 0; at < 10; at += 1) controller.enqueue(chunk);
        controller.close();
      },
    });
    const answer = await fetch(url(), { method: 'POST', headers, body, duplex: 'half' } as RequestInit);
    expect([answer.status, await answer.json()]).toEqual([413, envelope]);
  });

  test('no body in chunks is no body', async () => {
    const lines =
      'POST /api/nodes/x/psk HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer token.admin\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n0\r\n\r\n';
    expect(await raw(lines)).toMatch(/^HTTP\/1\.1 404 [^]*"not_found: /);
  });

  test.each([
    ['no HTTP', 'hello\r\n\r\n', 400],
    ['two lengths', 'GET /api/nodes HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n', 400],
    ['huge headers', `GET /api/nodes HTTP/1.1\r\nHost: a\r\nX-Big: ${'x'.repeat(40_000)}\r\n\r\n`, 431],
  ])('%s', async (_name, lines, status) => {
    const answer = await raw(lines);
    expect(answer).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
    expect(JSON.parse(answer.slice(answer.indexOf('\r\n\r\n') + 4))).toEqual(envelope);
  });

  test("the login sees the caller's address, through a trusted proxy too", async () => {
    const body = JSON.stringify({ username: 'admin', password: 'no' });
    const login = (more: Record<string, string>) =>
      fetch(`http://127.0.0.1:${port}/api/auth/login`, { method: 'POST', headers: { ...headers, ...more }, body });
    expect((await login({})).status).toBe(401);
    await login({ 'x-forwarded-for': '203.0.113.9, 198.51.100.7' });
    await login({ 'x-forwarded-for': '::FFFF:198.51.100.8' });
    expect(rest.plane.loginAddresses.slice(-3)).toEqual(['127.0.0.1', '198.51.100.7', '198.51.100.8']);
  });

  test('while it closes, what is in flight is answered, and what comes after it is a 503', async () => {
    const own = await startRest();
    const { id } = await own.data('POST', '/api/nodes', { body: { name: 'n' } });
    await own.app.listen({ host: '127.0.0.1', port: 0 });
    let release = (_ended: boolean): void => undefined;
    own.plane.setSessionsEnded(new Promise((resolve) => (release = resolve)));
    const request = (line: string) => `${line} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer token.admin\r\n\r\n`;
    let text = '';
    const socket = connect((own.app.server.address() as AddressInfo).port, '127.0.0.1');
    socket.on('data', (data) => (text += data.toString()));
    const ended = new Promise((resolve) => socket.on('close', resolve));
    socket.write(request(`DELETE /api/nodes/${id}`));
    await expect.poll(() => own.plane.sessionsEndedCalls).toEqual([id]);
    const closing = own.app.close();
    await expect.poll(() => own.app.server.listening).toBe(false);
    socket.write(request('GET /api/nodes'));
    release(true);
    await Promise.all([closing, ended]);
    expect(text.match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 200', 'HTTP/1.1 503']);
    expect(text).toContain('{"success":false,"data":null,"error":"unavailable: ');
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

test('sign-ins of one address are bounded whatever their outcome', async () => {
  const own = await startRest();
  const body = { username: 'admin', password: 'correct horse battery' };
  const statuses = new Map<number, number>();
  for (let at = 0; at < 610; at += 1) {
    const { statusCode } = await own.call('POST', '/api/auth/login', { role: 'nobody', body });
    statuses.set(statusCode, (statuses.get(statusCode) ?? 0) + 1);
  }
  expect([...statuses]).toEqual([
    [200, 600],
    [429, 10],
  ]);
  const answer = await own.call('POST', '/api/auth/login', { role: 'nobody', body });
  expect(answer.json()).toEqual(envelope);
  expect(Number(answer.headers['retry-after'])).toBeGreaterThan(0);
  await own.app.close();
});
