/** Sessions of browsers: the cookie, and which pages may change something with it (`docs/contract/console.md#signing-in`). */
import type { LightMyRequestResponse } from 'fastify';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { password, startRest, type RestFixture } from '../support/rest-fixture.js';

const host = 'control.example:8081';
const origin = `http://${host}`;
/** Origins of pages that may change nothing; undefined for a request without one. */
const strangers = ['https://elsewhere.example', 'null', 'http://control.example', undefined];

let rest: RestFixture;
beforeAll(async () => {
  rest = await startRest({
    trustedProxies: ['127.0.0.0/8'],
    corsOrigins: ['https://control.example:3000', 'https://elsewhere.example'],
  });
});
afterAll(() => rest.close());

type Headers = Record<string, string>;

const login = (headers: Headers = { origin }, username = 'operator', given = password) =>
  rest.call('POST', '/api/auth/login', {
    role: 'nobody',
    body: { username, password: given, cookie: true },
    headers: { host, ...headers },
  });

const setCookie = (answer: LightMyRequestResponse): string => String(answer.headers['set-cookie']);
/** The cookie as the browser sends it back. */
const cookieOf = (answer: LightMyRequestResponse): string => setCookie(answer).split(';')[0] ?? '';

const by = (
  cookie: string,
  method: string,
  url: string,
  { body, headers = {} }: { body?: object; headers?: Headers },
) =>
  rest.call(method, url, {
    role: 'nobody',
    headers: { host, cookie, ...headers },
    ...(body === undefined ? {} : { body }),
  });

const me = (cookie: string, headers: Headers = {}) => by(cookie, 'GET', '/api/auth/me', { headers });

describe('a sign-in with cookie: true', () => {
  test('sets a cookie that no script reads, and answers without the token', async () => {
    const answer = await login();
    expect(answer.statusCode).toBe(200);
    const { data } = answer.json();
    expect(data).toMatchObject({ expires_in: 43_200, user: { username: 'operator' } });
    expect(data).not.toHaveProperty('token');
    const [value, ...attributes] = setCookie(answer).split('; ');
    expect(value).toMatch(/^svc_session=[\w-]+\.[\w-]+\.[\w-]+$/);
    expect(attributes.toSorted()).toEqual(['HttpOnly', 'Max-Age=43200', 'Path=/api', 'SameSite=Strict']);
    expect(answer.body).not.toContain(value?.slice('svc_session='.length));
    expect((await me(cookieOf(answer))).json().data.username).toBe('operator');
  });

  test('is Secure behind a trusted proxy that says https, whose pages are then the own ones', async () => {
    const proxied = { 'x-forwarded-proto': 'https' };
    expect(setCookie(await login({ ...proxied, origin: `https://${host}` }))).toContain('; Secure');
    expect((await login({ ...proxied, origin })).statusCode).toBe(403);
    expect(setCookie(await login({ origin }))).not.toContain('Secure');
  });

  test('takes the origin of a host without its default port', async () => {
    expect((await login({ host: 'control.example:80', origin: 'http://control.example' })).statusCode).toBe(200);
  });

  test.each(strangers)('is refused to a page of %s, and counts as no sign-in', async (from) => {
    const answer = await login(from === undefined ? {} : { origin: from });
    expect(answer.statusCode).toBe(403);
    expect(answer.json().error).toMatch(/^forbidden: origin: .*http:\/\/control\.example:8081/);
    expect(answer.headers['set-cookie']).toBeUndefined();
  });

  test('without cookie: true answers the token and needs no origin', async () => {
    const body = { username: 'operator', password, cookie: false };
    const answer = await rest.call('POST', '/api/auth/login', { role: 'nobody', body });
    expect(answer.json().data.token).toEqual(expect.any(String));
    expect(answer.headers['set-cookie']).toBeUndefined();
  });
});

describe('a change by cookie', () => {
  const body = { name: 'by-cookie' };
  let cookie: string;
  beforeAll(async () => {
    cookie = cookieOf(await login());
  });

  test.each(strangers)('is refused to a page of %s, before its body is looked at', async (from) => {
    const headers = from === undefined ? {} : { origin: from };
    const answer = await by(cookie, 'POST', '/api/nodes', { body: { nonsense: 1 }, headers });
    expect(answer.statusCode).toBe(403);
  });

  test('is taken from the own pages, and from pages of the same host that CORS names', async () => {
    const created = await by(cookie, 'POST', '/api/nodes', { body, headers: { origin } });
    expect(created.statusCode).toBe(201);
    const other = { origin: 'https://control.example:3000' };
    const deleted = await by(cookie, 'DELETE', `/api/nodes/${created.json().data.id}`, { headers: other });
    expect(deleted.statusCode).toBe(200);
    expect(deleted.headers['access-control-allow-credentials']).toBe('true');
  });

  test('with an Authorization header is a change by that header', async () => {
    const headers = { authorization: `Bearer ${rest.tokenOf('viewer')}` };
    expect((await me(cookie, headers)).json().data.username).toBe('viewer');
    expect((await by(cookie, 'POST', '/api/nodes', { body, headers })).json().error).toContain('role');
    const basic = await me(cookie, { authorization: 'Basic YTpi' });
    expect(basic.statusCode).toBe(401);
  });

  test('by two cookies of the name is nobody’s, whichever comes first', async () => {
    expect((await me(`${cookie}; svc_session=planted`)).statusCode).toBe(401);
    expect((await me(`svc_session=planted; ${cookie}`)).statusCode).toBe(401);
    expect((await me(`a=b; ${cookie}; other_svc_session=c`)).statusCode).toBe(200);
  });

  test('to another origin gets no credentials from CORS', async () => {
    const answer = await me(cookie, { origin: 'https://elsewhere.example' });
    expect(answer.headers['access-control-allow-origin']).toBe('https://elsewhere.example');
    expect(answer.headers['access-control-allow-credentials']).toBeUndefined();
  });
});

test('signing out by cookie ends that token alone, and clears the cookie', async () => {
  const [one, other] = [cookieOf(await login()), cookieOf(await login())];
  expect((await by(one, 'POST', '/api/auth/logout', {})).statusCode).toBe(403);
  const out = await by(one, 'POST', '/api/auth/logout', { headers: { origin } });
  expect(out.statusCode).toBe(200);
  expect(setCookie(out)).toMatch(/^svc_session=; Max-Age=0; Path=\/api;/);
  expect((await me(one)).statusCode).toBe(401);
  expect((await me(other)).statusCode).toBe(200);
});

test('a password change by cookie sets a new cookie, and answers without a token', async () => {
  const cookie = cookieOf(await login({ origin }, 'viewer'));
  const answer = await by(cookie, 'PUT', '/api/auth/password', {
    headers: { origin },
    body: { current_password: password, new_password: 'another horse battery' },
  });
  expect(answer.json().data).toEqual({ token_type: 'Bearer', expires_in: 43_200 });
  expect((await me(cookie)).statusCode).toBe(401);
  expect((await me(cookieOf(answer))).statusCode).toBe(200);
});
