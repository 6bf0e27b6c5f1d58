/** Login, tokens, the account of the caller and the login budget: `docs/contract/rest.md#authentication-and-roles`. */
import { describe, expect, it } from 'vitest';
import { hasExactly, rfc3339, uuid } from './support/resources.js';
import { refused } from './support/rest.js';
import { adminPassword, sharedService } from './support/running.js';

const shared = sharedService();

interface User {
  readonly id: string;
  readonly username: string;
  readonly display_name: string | null;
  readonly email: string | null;
  readonly role: string;
  readonly version: number;
  readonly created_at: string;
  readonly updated_at: string;
}

const userFields = ['id', 'username', 'display_name', 'email', 'role', 'created_at', 'updated_at', 'version'];
const login = (json: object) => shared.api.send('POST', '/api/auth/login', { json, token: null });

describe('the login', () => {
  it('answers the user and a bearer token that is valid for 12 hours', async () => {
    const answer = await shared.api.send<{ token: string; token_type: string; expires_in: number; user: User }>(
      'POST',
      '/api/auth/login',
      { json: { username: 'admin', password: adminPassword }, token: null },
    );
    expect(answer.status).toBe(200);
    hasExactly(answer.data, ['token', 'token_type', 'expires_in', 'user']);
    expect(answer.data.token_type).toBe('Bearer');
    expect(answer.data.expires_in).toBe(43_200);
    hasExactly(answer.data.user, userFields);
    expect(answer.data.user).toMatchObject({ username: 'admin', role: 'admin', display_name: null, email: null });
    expect(answer.data.user.id).toMatch(uuid);
    const [head, claims] = answer.data.token.split('.').map((part) => Buffer.from(part, 'base64url').toString());
    expect(JSON.parse(head!)).toMatchObject({ alg: 'EdDSA' });
    const claimed = JSON.parse(claims!) as { sub: string; role: string; ver: number; exp: number; iat: number };
    expect(claimed).toMatchObject({ sub: answer.data.user.id, role: 'admin' });
    expect(claimed.ver).toEqual(expect.any(Number));
    expect(claimed.exp - claimed.iat).toBe(43_200);
  });

  it('compares user names in lower case', async () => {
    expect((await login({ username: 'ADMIN', password: adminPassword })).status).toBe(200);
  });

  it('answers the same for a wrong name and a wrong password', async () => {
    const [name, password] = [
      await login({ username: 'nobody', password: adminPassword }),
      await login({ username: 'admin', password: 'wrong password 12' }),
    ];
    refused(name, 401);
    refused(password, 401);
    expect(name.error).toBe(password.error);
  });

  it('refuses missing, unknown and mistyped fields', async () => {
    refused(await login({ username: 'admin' }), 400, 'password');
    refused(await login({ password: adminPassword }), 400, 'username');
    refused(await login({ username: 'admin', password: adminPassword, otp: '1' }), 400, 'otp');
    refused(await login({ username: 'admin', password: 5 }), 400, 'password');
  });

  it('gives tokens that are refused with another algorithm, another signature or none', async () => {
    const { api } = shared;
    const [, claims, signature] = api.token.split('.');
    const none = Buffer.from('{"alg":"none","typ":"JWT"}').toString('base64url');
    const hmac = Buffer.from('{"alg":"HS256","typ":"JWT"}').toString('base64url');
    const [head] = api.token.split('.');
    for (const token of [
      `${none}.${claims}.`,
      `${hmac}.${claims}.${signature}`,
      `${head}.${claims}.${'A'.repeat(86)}`,
      `${head}.${claims}`,
    ]) {
      refused(await api.send('GET', '/api/auth/me', { token }), 401);
    }
    const lower = await api.send('GET', '/api/auth/me', {
      token: null,
      headers: { authorization: `bearer ${api.token}` },
    });
    expect(lower.status).toBe(200);
  });
});

describe('/api/auth/me', () => {
  it('answers the account with its version as ETag', async () => {
    const answer = await shared.api.send<User>('GET', '/api/auth/me');
    hasExactly(answer.data, userFields);
    expect(answer.headers.etag).toBe(`"${answer.data.version}"`);
    expect(answer.data.created_at).toMatch(rfc3339);
  });

  it('accepts a part of the fields, clears one with null, and honours If-Match', async () => {
    const { api } = shared;
    const before = await api.ok<User>('GET', '/api/auth/me');
    const put = (json: object, headers: Record<string, string> = {}) =>
      api.send<User>('PUT', '/api/auth/me', { json, headers });
    const named = await put({ display_name: 'The Admin', email: 'admin@example.net' });
    expect(named.data).toMatchObject({ display_name: 'The Admin', email: 'admin@example.net' });
    expect(named.data.version).toBeGreaterThan(before.version);
    expect((await put({ display_name: 'The Admin' })).data).toEqual(named.data);
    expect((await put({})).data).toEqual(named.data);
    refused(await put({ display_name: 'x' }, { 'if-match': `"${before.version}"` }), 412);
    const cleared = await put({ email: null }, { 'if-match': `"${named.data.version}"` });
    expect(cleared.data).toMatchObject({ display_name: 'The Admin', email: null });
    expect((await put({ display_name: null }, { 'if-match': '*' })).data.display_name).toBeNull();
    refused(await put({ role: 'viewer' }), 400, 'role');
    refused(await put({ username: 'root' }), 400, 'username');
    refused(await put({ email: 5 }), 400, 'email');
  });

  it('never shows a password, nor does the audit', async () => {
    const { api } = shared;
    expect((await api.send('GET', '/api/auth/me')).text).not.toMatch(/password|hash|argon/i);
    expect((await api.send('GET', '/api/audit?page_size=500')).text).not.toMatch(/argon|correct horse/i);
  });
});

describe('the login budget', () => {
  it('answers 429 with Retry-After after 5 failures of one name, while others can still sign in', async () => {
    const statuses: number[] = [];
    for (let attempt = 0; attempt < 7; attempt += 1) {
      const answer = await login({ username: 'somebody', password: 'a wrong password' });
      statuses.push(answer.status);
      if (answer.status === 429) expect(Number(answer.headers['retry-after'])).toBeGreaterThan(0);
    }
    expect(statuses).toEqual([401, 401, 401, 401, 401, 429, 429]);
    expect((await login({ username: 'admin', password: adminPassword })).status).toBe(200);
    refused(await login({ username: 'SOMEBODY', password: 'a wrong password' }), 429);
  });

  it('answers 429 after 20 failures of one address', async () => {
    const statuses: number[] = [];
    for (let attempt = 0; attempt < 20; attempt += 1) {
      statuses.push((await login({ username: `guest${attempt}`, password: 'a wrong password' })).status);
    }
    expect(statuses.at(0)).toBe(401);
    expect(statuses.at(-1)).toBe(429);
    expect(statuses).toEqual(statuses.toSorted());
  });
});
