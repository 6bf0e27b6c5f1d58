/**
 * `docs/contract/rest.md#authentication-and-roles`, sentence by sentence, through REST. Passwords are compared in clear here:
 * Argon2, and how often it runs, is in `test/accounts` and `test/security`, the first start in `test/start`.
 */
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { request, type IncomingMessage } from 'node:http';
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import type { Role } from '../../src/domain/accounts/user.js';
import { streams } from '../../src/kernel/event.js';
import { limits } from '../../src/kernel/limits.js';
import type { PasswordHasher } from '../../src/security/passwords.js';
import { clearTextIn, clearTextInFiles } from '../support/clear-text.js';
import { eventually } from '../support/eventually.js';
import { createManualClock } from '../support/manual-clock.js';
import { plainPasswords, startRest, unknownId, type JsonData, type RestFixture } from '../support/rest-fixture.js';

const clock = createManualClock();
let rest: RestFixture;
/** Stored hashes that passwords were compared with, and whether the hash queue is full. */
const compared: (string | undefined)[] = [];
let queueFull = false;
const hasher: PasswordHasher = {
  ...plainPasswords,
  hash: async (text) => (queueFull ? { kind: 'busy' } : plainPasswords.hash(text)),
  async verify(stored, text) {
    compared.push(stored);
    return queueFull ? 'busy' : plainPasswords.verify(stored, text);
  },
};
beforeAll(async () => {
  rest = await startRest({ hasher, trustedProxies: ['127.0.0.0/8'] }, clock);
});
afterAll(() => rest.close());
afterEach(() => {
  queueFull = false;
});

const password = 'correct horse battery';
const wrong = 'wrong horse battery';
let made = 0;

/** Headers of a caller from an address that nobody else has. */
const fromElsewhere = (): Record<string, string> => {
  made += 1;
  return { 'x-forwarded-for': `10.0.${made >> 8}.${made & 255}` };
};
const signIn = (username: string, typed = password, headers = fromElsewhere()) =>
  rest.call('POST', '/api/auth/login', { role: 'nobody', body: { username, password: typed }, headers });
const bearer = (token: string) => ({ role: 'nobody', headers: { authorization: `Bearer ${token}` } }) as const;
const statusOf = async (token: string): Promise<number> =>
  (await rest.call('GET', '/api/auth/me', bearer(token))).statusCode;

async function aUser(fields: object = {}): Promise<{ username: string; user: JsonData; token: string }> {
  made += 1;
  const user = await rest.data('POST', '/api/auth/users', {
    body: { username: `user-${made}`, password, role: 'viewer', ...fields },
  });
  const { username } = user;
  return { username, user, token: (await signIn(username)).json().data.token };
}

const changePassword = (token: string, body: object, headers: Record<string, string> = fromElsewhere()) =>
  rest.call('PUT', '/api/auth/password', {
    role: 'nobody',
    body,
    headers: { ...headers, authorization: `Bearer ${token}` },
  });

function expectError(answer: { statusCode: number; json(): unknown }, status: number, error: RegExp): void {
  expect(answer.json()).toEqual({ success: false, data: null, error: expect.stringMatching(error) });
  expect(answer.statusCode).toBe(status);
}

/** The parts of a JWT. */
const decoded = (token: string): JsonData[] =>
  token
    .split('.')
    .slice(0, 2)
    .map((part) => JSON.parse(Buffer.from(part, 'base64url').toString('utf8')));

describe('Authentication and roles', () => {
  describe('roles', () => {
    test('a sign-out ends the token of its request alone, for good, and the audit says so', async () => {
      const { user, username, token } = await aUser();
      const other = (await signIn(username)).json().data.token;
      const out = () => rest.call('POST', '/api/auth/logout', bearer(token));
      const answer = await out();
      expect([answer.statusCode, answer.json().data]).toEqual([200, {}]);
      expect([await statusOf(token), await statusOf(other), (await out()).statusCode]).toEqual([401, 200, 401]);
      // A new sign-in gets a token with another id.
      expect(await statusOf((await signIn(username)).json().data.token)).toBe(200);
      const entries = `/api/audit?action=session.sign_out&resource_id=${user.id}`;
      await eventually(async () => (await rest.data('GET', entries)).total).toBe(1);
      const [entry] = (await rest.data('GET', entries)).items;
      expect(entry).toMatchObject({
        actor: { type: 'user', id: user.id, name: username },
        resource: { type: 'session', id: user.id, name: username },
        changes: [],
        revertible: false,
      });
      expect((await rest.data('GET', entries, { role: 'operator' })).total).toBe(0);
      const revert = await rest.call('POST', `/api/audit/${entry.id}/revert`);
      expectError(revert, 409, /a sign-out is a fact/);
    });

    test('a sign-out ends its token although another one was signed out with the same idempotency key', async () => {
      const { username, token } = await aUser();
      const other = (await signIn(username)).json().data.token;
      for (const one of [token, other]) {
        const headers = { authorization: `Bearer ${one}`, 'idempotency-key': 'the same' };
        expect((await rest.call('POST', '/api/auth/logout', { role: 'nobody', headers })).statusCode).toBe(200);
      }
      expect([await statusOf(token), await statusOf(other)]).toEqual([401, 401]);
    });

    test('an admin resets the password of another user, which ends every token of that user', async () => {
      const { user, username, token } = await aUser();
      const url = `/api/auth/users/${user.id}/password`;
      const next = 'an altogether new horse';
      const put = (body: object, call: object = {}) => rest.call('PUT', url, { body, ...call });
      expectError(await put({ new_password: 'short' }), 400, /new_password/);
      expectError(await put({ new_password: next }, { headers: { 'if-match': '"9"' } }), 412, /^precondition_failed/);
      expectError(await put({ new_password: next }, { role: 'operator' }), 403, /role admin/);
      expect(await statusOf(token)).toBe(200);
      const answer = await put({ new_password: next }, { headers: { 'if-match': '"1"' } });
      expect(answer.json().data).toMatchObject({ id: user.id, username, version: 2 });
      expect(await statusOf(token)).toBe(401);
      expect([(await signIn(username)).statusCode, (await signIn(username, next)).statusCode]).toEqual([401, 200]);
      const entries = `/api/audit?action=user.update&resource_id=${user.id}`;
      await eventually(async () => (await rest.data('GET', entries)).total).toBe(1);
      const [entry] = (await rest.data('GET', entries)).items;
      expect(entry).toMatchObject({
        actor: { type: 'user', name: 'admin' },
        changes: [{ path: 'password', before: '***', after: '***' }],
        revertible: false,
      });
      expectError(await rest.call('POST', `/api/audit/${entry.id}/revert`), 409, /a password can be replaced/);
      expectError(
        await rest.call('PUT', `/api/auth/users/${unknownId}/password`, { body: { new_password: next } }),
        404,
        /^not_found/,
      );
    });

    test('a request whose token ends before it is carried out changes nothing', async () => {
      const { user, username, token } = await aUser({ role: 'admin' });
      const url = await rest.app.listen({ host: '127.0.0.1', port: 0 });
      const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
      const authenticate = vi.spyOn(rest.deps.commands.accounts, 'authenticate');
      const hash = vi.spyOn(hasher, 'hash');
      let goOn = (): void => undefined;
      const held = new Promise<void>((resolve) => (goOn = resolve));
      hash.mockImplementationOnce(async (text) => held.then(async () => plainPasswords.hash(text)));
      const body = (name: string) => ({ username: `${username}-${name}`, password, role: 'admin' });
      const hashed = rest.call('POST', '/api/auth/users', { ...bearer(token), body: body('hashed') });
      await eventually(() => hash.mock.calls.length).toBe(1);
      // The second half of its body comes after the reset.
      const slow = request(`${url}/api/fleet/plan`, { method: 'POST', headers });
      slow.write('{"document":');
      await eventually(() => authenticate.mock.calls.length).toBe(2);
      await rest.data('PUT', `/api/auth/users/${user.id}/password`, { body: { new_password: 'no longer yours' } });
      goOn();
      slow.end('"svc: 1"}');
      const [answer] = (await once(slow, 'response')) as [IncomingMessage];
      answer.resume();
      expect([(await hashed).statusCode, answer.statusCode]).toEqual([401, 401]);
      expect((await rest.data('GET', `/api/auth/users?q=${username}`)).items).toHaveLength(1);
    });

    test('nobody resets the own password: that asks for the current one', async () => {
      const { id } = await rest.data('GET', '/api/auth/me');
      for (const own of [id, id.toUpperCase()]) {
        const answer = await rest.call('PUT', `/api/auth/users/${own}/password`, { body: { new_password: password } });
        expectError(answer, 403, /PUT \/api\/auth\/password/);
      }
    });

    test('audit entries about users and sign-ins are shown to admins only, whatever the filter', async () => {
      const { user, username } = await aUser();
      await signIn(username, wrong);
      const entries = async (role: Role, query: string): Promise<JsonData[]> =>
        (await rest.data('GET', `/api/audit?page_size=500&${query}`, { role })).items;
      const filters = [
        '',
        `resource_id=${user.id}`,
        `actor=${username}`,
        'resource_type=user',
        'resource_type=session',
        'action=user.create',
        'action=session.sign_in_refused',
      ];
      // The sign-in and the refused one.
      await eventually(async () => (await entries('admin', `actor=${username}`)).length).toBe(2);
      for (const filter of filters) {
        const types = async (role: Role) => (await entries(role, filter)).map(({ resource }) => resource.type);
        expect(await types('admin'), filter).toEqual(
          expect.arrayContaining([expect.stringMatching(/^(user|session)$/)]),
        );
        for (const role of ['operator', 'viewer'] as const) {
          expect((await types(role)).filter((type) => type === 'user' || type === 'session')).toEqual([]);
        }
      }
      for (const entry of await entries('admin', `resource_id=${user.id}`)) {
        expect(await rest.data('GET', `/api/audit/${entry.id}`)).toEqual(entry);
        expectError(await rest.call('GET', `/api/audit/${entry.id}`, { role: 'operator' }), 404, /^not_found: /);
      }
    });
  });

  describe('tokens', () => {
    test('are EdDSA JWTs with the claims sub, role and ver, sent as Authorization: Bearer', async () => {
      const { user, token } = await aUser({ role: 'operator' });
      const [header, claims] = decoded(token);
      expect(header).toMatchObject({ alg: 'EdDSA', typ: 'JWT' });
      expect(claims).toMatchObject({
        sub: user.id,
        role: 'operator',
        ver: expect.any(String),
        exp: claims.iat + 12 * 3600,
      });
      expect(await statusOf(token)).toBe(200);
      const others = { Token: token, authorization: `Basic ${token}`, cookie: `token=${token}` };
      const answer = await rest.call('GET', '/api/auth/me', { role: 'nobody', headers: others });
      expectError(answer, 401, /^unauthenticated: /);
      expect(answer.headers['www-authenticate']).toBe('Bearer');
    });

    test('all older ones of a user end at once with a password change, and only those', async () => {
      const [one, other] = [await aUser(), await aUser()];
      const older = [one.token, (await signIn(one.username)).json().data.token];
      const answer = await changePassword(one.token, { current_password: password, new_password: `${password}!` });
      const { token, token_type, expires_in, ...rest_ } = answer.json().data;
      expect([answer.statusCode, token_type, expires_in, rest_]).toEqual([200, 'Bearer', 43_200, {}]);
      expect(decoded(token)[1]).toMatchObject({ sub: one.user.id });
      const vers = [...older, token].map((each) => decoded(each)[1].ver);
      expect([vers[0] === vers[1], vers[1] === vers[2]]).toEqual([true, false]);
      for (const ended of older) expect(await statusOf(ended)).toBe(401);
      expect(await statusOf(token)).toBe(200);
      expect(await statusOf(other.token)).toBe(200);
      expectError(await signIn(one.username), 401, /^unauthenticated: /);
      expect((await signIn(one.username, `${password}!`)).statusCode).toBe(200);
    });
  });

  describe('passwords', () => {
    const lengths = [
      ['of 11 characters', 'p'.repeat(11), 400],
      ['of 12 characters', 'p'.repeat(12), 200],
    ] as const;

    test.each(lengths)('one %s', async (_what, given, status) => {
      const { username, token } = await aUser();
      const changed = await changePassword(token, { current_password: password, new_password: given });
      made += 1;
      const body = { username: `length-${made}`, password: given, role: 'viewer' };
      const created = await rest.call('POST', '/api/auth/users', { body });
      if (status === 200) {
        expect([changed.statusCode, created.statusCode]).toEqual([200, 201]);
        for (const name of [username, body.username]) expect((await signIn(name, given)).statusCode).toBe(200);
      } else {
        expectError(changed, 400, /^invalid_request: new_password: expected a string of 12 to 256 characters$/);
        expectError(created, 400, /^invalid_request: password: expected a string of 12 to 256 characters$/);
      }
    });

    test('a full hash queue answers 429 with Retry-After, whatever asks for a hash, and counts nothing', async () => {
      const { username, token } = await aUser();
      const headers = fromElsewhere();
      queueFull = true;
      const before = await rest.log(streams.accounts);
      for (let tries = 0; tries <= limits.logins.failuresPerAddressAndName; tries += 1) {
        const answers = [
          await signIn(username, password, headers),
          await changePassword(token, { current_password: password, new_password: `${password}!` }, headers),
        ];
        made += 1;
        const body = { username: `full-${made}`, password, role: 'viewer' };
        answers.push(await rest.call('POST', '/api/auth/users', { body, headers }));
        for (const answer of answers) {
          expectError(answer, 429, /^rate_limited: too many passwords/);
          expect(answer.headers['retry-after']).toBe('1');
        }
      }
      expect(await rest.log(streams.accounts)).toEqual(before);
      queueFull = false;
      expect((await signIn(username, password, headers)).statusCode).toBe(200);
    });

    test('neither they nor personal data are in clear in data folder, log, audit or errors', async () => {
      const secrets = {
        password: 'Zwölf Boxkämpfer 1',
        display_name: 'Wilhelmina Überwald',
        email: 'wilhelmina@überwald.example',
        next: 'Zwölf Boxkämpfer 2',
        typed: 'typed into the wrong field',
      };
      const { display_name, email } = secrets;
      made += 1;
      const username = `secret-${made}`;
      const body = { username, password: secrets.password, role: 'viewer', display_name, email };
      const headers = { 'idempotency-key': 'of-a-user-with-secrets' };
      await rest.data('POST', '/api/auth/users', { body, headers });
      const { token } = (await signIn(username, secrets.password)).json().data;
      const refused = [
        await rest.call('POST', '/api/auth/users', { body }),
        await rest.call('POST', '/api/auth/users', { body: { ...body, role: secrets.typed } }),
        await rest.call('POST', '/api/auth/users', { body: { ...body, password: secrets.typed.slice(0, 11) } }),
        await rest.call('PUT', '/api/auth/me', { ...bearer(token), body: { email: secrets.typed } }),
        await signIn(secrets.typed, secrets.password),
        await signIn(username, secrets.typed),
        await changePassword(token, { current_password: secrets.typed, new_password: secrets.next }),
      ];
      expect(refused.map(({ statusCode }) => statusCode)).toEqual([409, 400, 400, 400, 401, 401, 400]);
      await changePassword(token, { current_password: secrets.password, new_password: secrets.next });
      const signIns = `/api/audit?actor=${username}&action=session.sign_in`;
      await eventually(async () => (await rest.data('GET', signIns)).total).toBe(1);
      const audit = await rest.data('GET', '/api/audit?page_size=500');
      const shown = [...refused.map(({ body: text }) => text), audit, rest.logged];
      expect(clearTextIn(shown, Object.values(secrets))).toEqual([]);
      expect(clearTextInFiles(rest.folder, Object.values(secrets))).toEqual([]);
      // Proves that the files were searched.
      expect(clearTextInFiles(rest.folder, [username])).toContain(username);
      expect(audit.items).toContainEqual(
        expect.objectContaining({
          action: 'user.create',
          changes: [
            { path: 'username', before: null, after: username },
            { path: 'role', before: null, after: 'viewer' },
            { path: 'password', before: null, after: '***' },
            { path: 'display_name', before: null, after: '***' },
            { path: 'email', before: null, after: '***' },
          ],
          revertible: false,
        }),
      );
      // Nor is a plain hash of the body, from which passwords could be guessed quickly.
      const sha256 = createHash('sha256').update(JSON.stringify(body)).digest('hex');
      expect(JSON.stringify(await rest.log(streams.accounts))).not.toContain(sha256);
    });
  });

  describe('login budgets', () => {
    const fail = async (count: number, username: string, headers: Record<string, string>): Promise<void> => {
      for (let index = 0; index < count; index += 1) {
        expectError(await signIn(username, wrong, headers), 401, /^unauthenticated: /);
      }
    };

    test('five failures in five minutes per address and user name, then 429 with Retry-After', async () => {
      const { username } = await aUser();
      const headers = fromElsewhere();
      await fail(5, username, headers);
      const refused = await signIn(username, password, headers);
      expectError(refused, 429, /^rate_limited: too many failed sign-ins; try again later$/);
      expect(refused.headers['retry-after']).toBe('300');
      // The name in another case is the same name; another name is not.
      expect((await signIn(username.toUpperCase(), password, headers)).statusCode).toBe(429);
      expect((await signIn('operator', password, headers)).statusCode).toBe(200);
      clock.advance(limits.logins.windowMs);
      expect((await signIn(username, password, headers)).statusCode).toBe(200);
    });

    test('a budget that is used up is noticed before any hash is computed', async () => {
      const headers = fromElsewhere();
      await fail(5, 'nobody', headers);
      compared.length = 0;
      expect((await signIn('nobody', wrong, headers)).statusCode).toBe(429);
      expect(compared).toEqual([]);
    });

    test('an unknown name gets the answer and the work of a wrong password', async () => {
      const { username } = await aUser();
      compared.length = 0;
      const answers = [await signIn(username, wrong), await signIn('nobody-at-all', wrong)];
      expect(answers.map(({ statusCode }) => statusCode)).toEqual([401, 401]);
      expect(answers[0]?.json()).toEqual(answers[1]?.json());
      expect(compared).toEqual([password, undefined]);
    });

    test('wrong current passwords count with failed sign-ins, and are refused with them', async () => {
      const { username, token } = await aUser();
      const headers = fromElsewhere();
      const guess = () => changePassword(token, { current_password: wrong, new_password: password }, headers);
      for (let index = 0; index < 3; index += 1) {
        expectError(await guess(), 400, /^invalid_request: current_password: /);
      }
      await fail(2, username, headers);
      const refused = await guess();
      expectError(refused, 429, /^rate_limited: /);
      expect(Number(refused.headers['retry-after'])).toBeGreaterThan(0);
      expectError(await signIn(username, password, headers), 429, /^rate_limited: /);
      expect(await statusOf(token), 'the token is still good').toBe(200);
      const change = { current_password: password, new_password: `${password}!` };
      expect((await changePassword(token, change)).statusCode, 'from another address').toBe(200);
    });

    test('a refused precondition or body costs no failure and no hash', async () => {
      const { token } = await aUser();
      const headers = fromElsewhere();
      compared.length = 0;
      const body = { current_password: wrong, new_password: `${password}!` };
      for (let index = 0; index < 6; index += 1) {
        const tag = { ...headers, 'if-match': '"7"' };
        expectError(await changePassword(token, body, tag), 412, /^precondition_failed: /);
        const short = { ...body, new_password: 'short' };
        expectError(await changePassword(token, short, headers), 400, /^invalid_request: new_password: /);
      }
      expect(compared).toEqual([]);
      expectError(await changePassword(token, body, headers), 400, /^invalid_request: current_password: /);
    });
  });

  describe('POST /api/auth/login', () => {
    test('compares user names in lower case', async () => {
      const { username } = await aUser();
      const answer = await signIn(username.toUpperCase());
      expect([answer.statusCode, answer.json().data.user.username]).toEqual([200, username]);
    });
  });

  describe('PUT /api/auth/password', () => {
    const change = { current_password: password, new_password: 'a new horse battery' };

    test('honours If-Match with the version of the account, and answers its position', async () => {
      const { token, user } = await aUser();
      const answer = await changePassword(token, change, { 'if-match': '"1"' });
      const last = (await rest.log(streams.accounts)).at(-1);
      expect([answer.statusCode, answer.headers['x-position']]).toEqual([200, String(last?.position)]);
      expect(await rest.data('GET', `/api/auth/users/${user.id}`)).toMatchObject({ version: 2 });
    });

    test('of two changes at once with the same current password, one is refused and names it', async () => {
      const { token, username } = await aUser();
      const headers = fromElsewhere();
      const answers = await Promise.all(
        ['one', 'two'].map((which) =>
          changePassword(token, { ...change, new_password: `${which} of two passwords` }, headers),
        ),
      );
      const refused = answers.findIndex(({ statusCode }) => statusCode !== 200);
      expect(answers.map(({ statusCode }) => statusCode).toSorted()).toEqual([200, 400]);
      expect(answers[refused]?.json().error).toMatch(/^invalid_request: current_password: /);
      const stays = refused === 0 ? 'two' : 'one';
      expect((await signIn(username, `${stays} of two passwords`)).statusCode).toBe(200);
    });

    test('the same password again ends older tokens as any other', async () => {
      const { token, username } = await aUser();
      expect((await changePassword(token, { ...change, new_password: password })).statusCode).toBe(200);
      expect(await statusOf(token)).toBe(401);
      expect((await signIn(username)).statusCode).toBe(200);
    });

    test('is one audit entry of the user itself, without the passwords', async () => {
      const { token, user, username } = await aUser();
      await changePassword(token, change);
      const { items } = await rest.data('GET', `/api/audit?resource_id=${user.id}&action=user.update`);
      expect(items).toMatchObject([
        {
          actor: { type: 'user', id: user.id, name: username },
          resource: { type: 'user', id: user.id, name: username },
          changes: [{ path: 'password', before: '***', after: '***' }],
          revertible: false,
        },
      ]);
    });
  });

  describe('POST /api/auth/users', () => {
    const post = (body: object, headers: Record<string, string> = {}) =>
      rest.call('POST', '/api/auth/users', { body, headers });

    test('answers 201, Location and the user, whom a GET shows with its version as ETag', async () => {
      const created = await post({ username: 'Located.User_1', password, role: 'operator' });
      const { id } = created.json().data;
      expect([created.statusCode, created.headers['location']]).toEqual([201, `/api/auth/users/${id}`]);
      const last = (await rest.log(streams.accounts)).at(-1);
      expect(created.headers['x-position']).toBe(String(last?.position));
      const got = await rest.call('GET', `/api/auth/users/${id}`);
      expect([got.statusCode, got.headers['etag'], got.json()]).toEqual([200, '"1"', created.json()]);
      expect(got.json().data).toMatchObject({
        username: 'located.user_1',
        role: 'operator',
        display_name: null,
        email: null,
      });
    });

    test('of several at once with one name, one is created', async () => {
      const answers = await Promise.all([1, 2, 3, 4].map(() => post({ username: 'raced', password, role: 'viewer' })));
      expect(answers.map(({ statusCode }) => statusCode).toSorted()).toEqual([201, 409, 409, 409]);
      expect((await rest.data('GET', '/api/auth/users?q=raced')).total).toBe(1);
    });
  });

  // Last: it ends the tokens of the other tests.
  describe('after 12 hours', () => {
    test('a token ends, to the second', async () => {
      const { token } = await aUser();
      clock.advance(12 * 3_600_000 - 1_000);
      expect(await statusOf(token)).toBe(200);
      clock.advance(1_000);
      expect(await statusOf(token)).toBe(401);
    });
  });
});
