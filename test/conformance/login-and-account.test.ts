/** Login, tokens, accounts, users and the login budget: `docs/contract/rest.md#authentication-and-roles`. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { hasExactly, rfc3339, uuid } from './support/resources.js';
import { createApi, refused } from './support/rest.js';
import type { Api } from './support/rest.js';
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
    const claimed = JSON.parse(claims!) as { sub: string; role: string; ver: string; exp: number; iat: number };
    expect(claimed).toMatchObject({ sub: answer.data.user.id, role: 'admin' });
    expect(claimed.ver).toEqual(expect.any(String));
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

/** A client that is signed in. */
async function signedIn(username: string, password: string): Promise<Api> {
  const { token } = (await login({ username, password })).data as { token: string };
  return createApi(shared.api.url, token);
}

describe('Authentication and roles', () => {
  const password = 'Zwölf Boxkämpfer jagen';
  const next = 'Viktor quer über den Deich';
  const ada = { username: 'Ada', password, role: 'operator', display_name: 'Ada Überwald', email: 'ada@xn--e.example' };

  it('has one user after the first start: an admin, whom the service created', async () => {
    const { api } = shared;
    const { items } = await api.ok<{ items: User[] }>('GET', '/api/auth/users');
    expect(items).toMatchObject([{ username: 'admin', role: 'admin' }]);
    const path = `/api/audit?action=user.create&resource_id=${items[0]!.id}`;
    const created = await api.ok<{ items: object[] }>('GET', path);
    expect(created.items).toMatchObject([
      { actor: { type: 'system' }, resource: { name: 'admin' }, revertible: false },
    ]);
  });

  it('lets an admin create users with a role, list them and show one', async () => {
    const { api } = shared;
    const created = await api.send<User>('POST', '/api/auth/users', { json: ada });
    expect([created.status, created.headers.location]).toEqual([201, `/api/auth/users/${created.data.id}`]);
    hasExactly(created.data, userFields);
    expect(created.data).toMatchObject({ username: 'ada', role: 'operator', version: 1, email: ada.email });
    const got = await api.send<User>('GET', `/api/auth/users/${created.data.id}`);
    expect([got.data, got.headers.etag]).toEqual([created.data, '"1"']);
    const list = await api.ok<{ items: User[]; total: number }>('GET', '/api/auth/users?sort=-username');
    expect(list.items.map(({ username }) => username)).toEqual(['admin', 'ada']);
    refused(await api.send('POST', '/api/auth/users', { json: { ...ada, username: 'ADA' } }), 409, 'username');
    refused(await api.send('POST', '/api/auth/users', { json: { ...ada, username: 'a b' } }), 400, 'username');
    refused(await api.send('POST', '/api/auth/users', { json: { ...ada, password: 'eleven char' } }), 400, 'password');
  });

  it('creates a user once per Idempotency-Key, and says another body is a conflict', async () => {
    const headers = { 'idempotency-key': 'one-user' };
    const json = { username: 'vera', password, role: 'viewer' };
    const post = (body: object) => shared.api.send<User>('POST', '/api/auth/users', { json: body, headers });
    const first = await post(json);
    const again = await post(json);
    expect([first.status, again.status, again.data]).toEqual([201, 201, first.data]);
    refused(await post({ ...json, password: next }), 409, 'Idempotency-Key');
  });

  it('holds viewers and operators to their roles', async () => {
    const [viewer, operator] = [await signedIn('vera', password), await signedIn('ada', password)];
    const upstream = { name: 'by-role', endpoint: 'a.example:80' };
    refused(await viewer.send('POST', '/api/l4-upstreams', { json: upstream }), 403);
    expect((await viewer.send('GET', '/api/l4-upstreams')).status).toBe(200);
    expect((await operator.send('POST', '/api/l4-upstreams', { json: upstream })).status).toBe(201);
    for (const { send } of [viewer, operator]) {
      refused(await send('GET', '/api/auth/users'), 403);
      refused(await send('POST', '/api/auth/users', { json: ada }), 403);
      refused(await send('GET', `/api/auth/users/${'0'.repeat(8)}`), 403);
      expect((await send('PUT', '/api/auth/me', { json: { display_name: 'me' } })).status).toBe(200);
      expect((await send('GET', '/api/audit?resource_type=user')).data).toMatchObject({ items: [], total: 0 });
    }
    [viewer, operator].forEach(({ close }) => close());
  });

  it('changes the own password, which ends every older token and answers with a fresh one', async () => {
    const [one, two] = [await signedIn('ada', password), await signedIn('ada', password)];
    const wrong = { current_password: next, new_password: next };
    refused(await one.send('PUT', '/api/auth/password', { json: wrong }), 400, 'current_password');
    const short = { current_password: password, new_password: 'eleven char' };
    refused(await one.send('PUT', '/api/auth/password', { json: short }), 400, 'new_password');
    const json = { current_password: password, new_password: next };
    const changed = await one.send<{ token: string; token_type: string; expires_in: number }>(
      'PUT',
      '/api/auth/password',
      { json },
    );
    hasExactly(changed.data, ['token', 'token_type', 'expires_in']);
    expect(changed.data).toMatchObject({ token_type: 'Bearer', expires_in: 43_200 });
    for (const old of [one, two]) refused(await old.send('GET', '/api/auth/me'), 401);
    expect((await one.send('GET', '/api/auth/me', { token: changed.data.token })).status).toBe(200);
    refused(await login({ username: 'ada', password }), 401);
    expect((await login({ username: 'ada', password: next })).status).toBe(200);
    [one, two].forEach(({ close }) => close());
  });

  it('keeps passwords and personal data out of data folder, log and audit', async () => {
    const audit = await shared.api.send('GET', '/api/audit?page_size=500');
    const files = readdirSync(shared.dataDir, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => readFileSync(join(entry.parentPath, entry.name)));
    const texts = [...files, Buffer.from(audit.text), Buffer.from(shared.service.program().output())];
    for (const secret of [password, next, ada.display_name, ada.email, adminPassword, '$argon2id$']) {
      for (const form of [secret, JSON.stringify(secret).slice(1, -1), Buffer.from(secret).toString('base64')]) {
        expect([secret, texts.filter((text) => text.includes(form)).length]).toEqual([secret, 0]);
      }
    }
    expect(
      files.some((text) => text.includes('"vera"')),
      'the files are those of this service',
    ).toBe(true);
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
