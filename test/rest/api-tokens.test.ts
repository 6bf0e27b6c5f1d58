/** API tokens over REST (`docs/contract/automation.md#api-tokens`). */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Role } from '../../src/domain/accounts/user.js';
import { limits } from '../../src/kernel/limits.js';
import { eventually } from '../support/eventually.js';
import { createManualClock, type ManualClock } from '../support/manual-clock.js';
import { password, startRest, type JsonData, type RestFixture } from '../support/rest-fixture.js';

const path = '/api/auth/tokens';
const day = 86_400_000;

let rest: RestFixture;
let clock: ManualClock;
/** The users' ids, by role. */
const users: Record<string, string> = {};
beforeAll(async () => {
  clock = createManualClock();
  rest = await startRest({ trustedProxies: ['127.0.0.0/8'], tokenTtlSeconds: 100 * 366 * 86_400 }, clock);
  for (const role of ['admin', 'operator', 'viewer'] as const) {
    users[role] = (await rest.data('GET', '/api/auth/me', { role })).id;
  }
});
afterAll(() => rest.close());

let made = 0;
const make = (fields: object = {}, role: Role = 'operator'): Promise<JsonData> =>
  rest.data('POST', path, { role, body: { name: `token ${(made += 1)}`, role: 'viewer', ...fields } });

/** A call by a token, from an address. */
const by = (token: string, method: string, url: string, body?: object, from = '192.0.2.1') =>
  rest.call(method, url, {
    role: 'nobody',
    headers: { authorization: `Bearer ${token}`, 'x-forwarded-for': from },
    ...(body === undefined ? {} : { body }),
  });
const me = (token: string, from?: string) => by(token, 'GET', '/api/auth/me', undefined, from);

describe('a new API token', () => {
  test('is shown once, with what was asked for, and authenticates its user', async () => {
    const created = await make({ name: 'ci', role: 'operator', from: ['192.0.2.9/24', '::ffff:198.51.100.7'] });
    expect(created).toMatchObject({
      user_id: users['operator'],
      name: 'ci',
      role: 'operator',
      from: ['192.0.2.0/24', '198.51.100.7'],
      expired: false,
      expires_at: new Date(clock.now() + 90 * day).toISOString(),
      last_used_at: null,
      last_used_from: null,
      version: 1,
    });
    expect(created.token).toMatch(/^svcat_[\w-]{43}$/);
    expect(created.prefix).toBe(created.token.slice(0, 12));
    const { token, ...shown } = created;
    const got = await rest.call('GET', `${path}/${created.id}`, { role: 'operator' });
    expect(got.json().data).toEqual(shown);
    expect(got.headers.etag).toBe('"1"');
    expect((await me(token)).json().data.username).toBe('operator');
  });

  test('is in the log, the files, the audit and the service’s own log as a hash alone', async () => {
    const { token, prefix } = await make();
    await me(token);
    expect(JSON.stringify(await rest.log('svc-accounts'))).not.toContain(token);
    expect(JSON.stringify(await rest.log('svc-accounts'))).toContain(prefix);
    expect(rest.logged.join('\n')).not.toContain(token);
    expect((await rest.call('GET', '/api/audit')).body).not.toContain(token);
  });

  test('has a role that is at most the caller’s, and never more than its user’s', async () => {
    const refused = await rest.call('POST', path, { role: 'viewer', body: { name: 'x', role: 'operator' } });
    expect([refused.statusCode, refused.json().error]).toEqual([
      403,
      "forbidden: role: expected at most the caller's own, viewer",
    ]);
    const { token } = await make({ role: 'viewer' }, 'admin');
    expect((await by(token, 'POST', '/api/nodes', { name: 'n' })).statusCode).toBe(403);
    expect((await by(token, 'GET', '/api/auth/users')).statusCode).toBe(403);
  });

  test.each([
    [{ expires_in_days: 0 }, 'expires_in_days'],
    [{ expires_in_days: 367 }, 'expires_in_days'],
    [{ from: ['192.0.2.0/33'] }, 'from[0]'],
    [{ from: ['::ffff:192.0.2.0/90'] }, 'from[0]'],
    [{ from: ['example.org'] }, 'from[0]'],
  ])('is refused with %j, naming the field', async (wrong, field) => {
    const answer = await rest.call('POST', path, { body: { name: 'wrong', role: 'viewer', ...wrong } });
    expect(answer.statusCode).toBe(400);
    expect(answer.json().error).toContain(`${field}: `);
  });

  test('has a name that no live token of its user has, in any case', async () => {
    await make({ name: 'Nightly', expires_in_days: 1 });
    const again = { role: 'operator', body: { name: 'nightly', role: 'viewer' } } as const;
    const taken = await rest.call('POST', path, again);
    expect([taken.statusCode, taken.json().error]).toEqual([409, expect.stringContaining('"Nightly"')]);
    await make({ name: 'nightly' }, 'viewer');
    clock.advance(day);
    expect((await rest.call('POST', path, again)).statusCode).toBe(201);
  });

  test('is refused beyond 64 live ones of a user', async () => {
    const { items } = await rest.data('GET', `${path}?page_size=200`, { role: 'viewer' });
    const left = limits.accounts.apiTokens.live - items.filter((one: JsonData) => !one.expired).length;
    const all = await Promise.all(Array.from({ length: left }, () => make({}, 'viewer')));
    const full = await rest.call('POST', path, { role: 'viewer', body: { name: 'one too many', role: 'viewer' } });
    expect([full.statusCode, full.json().error]).toEqual([409, expect.stringContaining('64')]);
    await Promise.all(all.map(({ id }) => rest.data('DELETE', `${path}/${id}`, { role: 'viewer' })));
    await make({}, 'viewer');
  });
});

describe('an API token', () => {
  test('that is deleted, or has expired, is refused and costs no budget', async () => {
    const [deleted, expiring] = [await make(), await make({ expires_in_days: 1 })];
    await rest.data('DELETE', `${path}/${deleted.id}`, { role: 'operator' });
    expect((await me(expiring.token)).statusCode).toBe(200);
    clock.advance(day);
    for (let index = 0; index < 30; index += 1) {
      expect((await me(deleted.token)).statusCode).toBe(401);
      expect((await me(expiring.token)).statusCode).toBe(401);
    }
    const listed = await rest.data('GET', `${path}/${expiring.id}`, { role: 'operator' });
    expect(listed.expired).toBe(true);
    clock.advance(30 * day);
    expect((await rest.call('GET', `${path}/${expiring.id}`, { role: 'operator' })).statusCode).toBe(404);
    await make({ expires_in_days: null });
    expect((await me(expiring.token)).statusCode).toBe(401);
  });

  test('of null days never expires', async () => {
    const { token, expires_at } = await make({ expires_in_days: null });
    expect(expires_at).toBeNull();
    clock.advance(5_000 * day);
    expect((await me(token)).statusCode).toBe(200);
  });

  test('is taken from its addresses alone, IPv4-mapped ones as IPv4, and elsewhere is logged with its name', async () => {
    const { token, name } = await make({ from: ['192.0.2.0/24', '2001:db8::/32'] });
    expect((await me(token, '192.0.2.200')).statusCode).toBe(200);
    expect((await me(token, '::ffff:192.0.2.200')).statusCode).toBe(200);
    expect((await me(token, '2001:db8:1::2')).statusCode).toBe(200);
    for (let index = 0; index < 30; index += 1) expect((await me(token, '198.51.100.1')).statusCode).toBe(401);
    expect(rest.logged.filter((line) => line.includes(name) && line.includes('198.51.100.1'))).not.toEqual([]);
  });

  test('from all of IPv6 is not taken from IPv4, and from all of IPv4 not from IPv6', async () => {
    const [six, four] = [(await make({ from: ['::/0'] })).token, (await make({ from: ['::ffff:0:0/96'] })).token];
    expect((await me(six, '2001:db8::1')).statusCode).toBe(200);
    expect((await me(four, '::ffff:192.0.2.9')).statusCode).toBe(200);
    for (const address of ['192.0.2.9', '::ffff:192.0.2.9']) expect((await me(six, address)).statusCode).toBe(401);
    expect((await me(four, '2001:db8::1')).statusCode).toBe(401);
  });

  test('that nobody knows has a budget of its own for each address, 20 and then 20 a minute', async () => {
    const from = '203.0.113.5';
    const wrong = (index: number): string =>
      index % 2 === 0 ? 'svcat_short' : `svcat_${'A'.repeat(42)}${String(index % 10)}`;
    for (let index = 0; index < 20; index += 1) expect((await me(wrong(index), from)).statusCode).toBe(401);
    for (const index of [0, 1]) {
      const answer = await me(wrong(index), from);
      expect([answer.statusCode, answer.headers['retry-after']]).toEqual([429, '3']);
    }
    expect((await me(wrong(0), '203.0.113.6')).statusCode).toBe(401);
    const { token } = await make();
    expect((await me(token, from)).statusCode).toBe(200);
    const login = { username: 'operator', password };
    const headers = { 'x-forwarded-for': from };
    expect((await rest.call('POST', '/api/auth/login', { role: 'nobody', headers, body: login })).statusCode).toBe(200);
    clock.advance(3_000);
    expect((await me(wrong(1), from)).statusCode).toBe(401);
    expect((await me(wrong(1), from)).statusCode).toBe(429);
  });

  test('says when and from where it was used last, to the minute', async () => {
    const { id, token } = await make();
    clock.advance(61_234);
    await me(token, '192.0.2.44');
    const used = { last_used_at: new Date(Math.floor(clock.now() / 60_000) * 60_000).toISOString() };
    expect(await rest.data('GET', `${path}/${id}`, { role: 'operator' })).toMatchObject({
      ...used,
      last_used_from: '192.0.2.44',
    });
    const stored = await rest.stores.readStore.collection({ name: 'api_token_uses', version: 1 });
    await eventually(async () => (await stored.get(id))?.fields['from']).toBe('192.0.2.44');
  });

  test('may change nothing under /api/auth, and deletes itself alone', async () => {
    const [own, other] = [await make({ role: 'admin' }, 'admin'), await make({}, 'admin')];
    const changes: readonly (readonly [string, string, object?])[] = [
      ['POST', path, { name: 'x', role: 'viewer' }],
      ['POST', '/api/auth/logout'],
      ['POST', '/api/auth/users', { username: 'ada', password, role: 'viewer' }],
      ['PUT', '/api/auth/me', { display_name: 'x' }],
      ['PUT', '/api/auth/password', { current_password: password, new_password: 'another horse battery' }],
      ['PUT', `/api/auth/users/${users['viewer']}/password`, { new_password: 'another horse battery' }],
      ['DELETE', `${path}/${other.id}`],
    ];
    for (const [method, url, body] of changes) {
      const answer = await by(own.token, method, url, body);
      expect([method, url, answer.statusCode]).toEqual([method, url, 403]);
      expect(answer.json().error).toContain('an API token may');
    }
    expect((await by(own.token, 'GET', '/api/auth/users')).statusCode).toBe(200);
    const login = { username: 'admin', password };
    expect((await by(own.token, 'POST', '/api/auth/login', login)).statusCode).toBe(200);
    expect((await by(own.token, 'DELETE', `${path}/${own.id.toUpperCase()}`)).statusCode).toBe(404);
    expect((await by(own.token, 'DELETE', `${path}/${own.id}`)).statusCode).toBe(200);
    expect((await me(own.token)).statusCode).toBe(401);
  });

  test('stays after a password change unless it is asked to end, and ends with a reset by an admin', async () => {
    const username = 'ada';
    await rest.data('POST', '/api/auth/users', { body: { username, password, role: 'operator' } });
    const signIn = async (given: string): Promise<string> =>
      (await rest.data('POST', '/api/auth/login', { role: 'nobody', body: { username, password: given } })).token;
    const create = async (session: string): Promise<string> =>
      (await by(session, 'POST', path, { name: `of ada ${(made += 1)}`, role: 'viewer' })).json().data.token;
    const session = await signIn(password);
    const token = await create(session);
    const change = (from: string, to: string, more: object = {}) => {
      return { current_password: from, new_password: to, ...more };
    };
    const second = 'a second horse battery';
    const changed = await by(session, 'PUT', '/api/auth/password', change(password, second));
    expect((await me(token)).statusCode).toBe(200);
    const fresh = changed.json().data.token;
    await by(fresh, 'PUT', '/api/auth/password', change(second, password, { revoke_tokens: true }));
    expect((await me(token)).statusCode).toBe(401);
    const again = await create(await signIn(password));
    const { items } = await rest.data('GET', `/api/auth/users?q=${username}`);
    await rest.data('PUT', `/api/auth/users/${items[0].id}/password`, { body: { new_password: second } });
    expect((await me(again)).statusCode).toBe(401);
    const listed = await rest.data('GET', `${path}?user_id=${items[0].id}`);
    expect(listed.items).toEqual([]);
    const [entry] = (await rest.data('GET', '/api/audit?action=user.update')).items;
    expect(entry.changes).toContainEqual({ path: 'api_tokens', before: [expect.any(String)], after: [] });
  });
});

describe('the list of API tokens', () => {
  test('has one’s own, and for an admin everybody’s', async () => {
    const [mine, theirs] = [await make({ name: 'zz mine' }, 'operator'), await make({ name: 'zz theirs' }, 'viewer')];
    const listed = async (role: Role, query = '') =>
      (await rest.data('GET', `${path}?q=ZZ${query}`, { role })).items.map(({ id }: JsonData) => id);
    expect(await listed('operator')).toEqual([mine.id]);
    expect(await listed('viewer')).toEqual([theirs.id]);
    expect(await listed('admin')).toEqual([mine.id, theirs.id]);
    expect(await listed('admin', '&sort=-name')).toEqual([theirs.id, mine.id]);
    expect(await listed('admin', `&user_id=${users['viewer']}`)).toEqual([theirs.id]);
    expect(await listed('operator', `&user_id=${users['viewer']}`)).toEqual([]);
    for (const method of ['GET', 'DELETE']) {
      expect((await rest.call(method, `${path}/${theirs.id}`, { role: 'operator' })).statusCode).toBe(404);
    }
    expect((await rest.call('DELETE', `${path}/${theirs.id}`, { headers: { 'if-match': '"2"' } })).statusCode).toBe(
      412,
    );
    expect((await rest.call('DELETE', `${path}/${theirs.id}`)).statusCode).toBe(200);
  });
});

describe('the audit', () => {
  test('has what a token did under its user, with the token’s name beside it; null for people', async () => {
    const { id, name, token } = await make({ role: 'operator' });
    const node = (await by(token, 'POST', '/api/nodes', { name: 'made by a program' })).json().data;
    const [entry] = (await rest.data('GET', `/api/audit?resource_id=${node.id}`, { role: 'viewer' })).items;
    expect(entry).toMatchObject({ actor: { type: 'user', name: 'operator' }, token: { id, name } });
    await rest.data('DELETE', `/api/nodes/${node.id}`);
    const [byHand] = (await rest.data('GET', `/api/audit?resource_id=${node.id}`)).items;
    expect(byHand.token).toBeNull();
    const reverted = (await by(token, 'POST', `/api/audit/${byHand.id}/revert`)).json().data;
    expect(reverted.token).toEqual({ id, name });
  });

  test('has a token’s life, which cannot be reverted, for its user and for admins', async () => {
    const { id, name } = await make({ name: 'short life' });
    await rest.data('DELETE', `${path}/${id}`, { role: 'operator' });
    const entries = async (role: Role, query = '') =>
      (await rest.data('GET', `/api/audit?resource_id=${id}${query}`, { role })).items;
    const shown = await entries('operator');
    expect(shown.map(({ action, resource }: JsonData) => [action, resource])).toEqual([
      ['api_token.delete', { type: 'api_token', id, name }],
      ['api_token.create', { type: 'api_token', id, name }],
    ]);
    expect(shown.map(({ revertible }: JsonData) => revertible)).toEqual([false, false]);
    expect(await entries('operator', '&resource_type=api_token&action=api_token.create')).toHaveLength(1);
    expect(await entries('admin')).toEqual(shown);
    expect(await entries('viewer')).toEqual([]);
    const all = (await rest.data('GET', '/api/audit?page_size=200', { role: 'viewer' })).items;
    const types = new Set(all.map(({ resource }: JsonData) => resource.type));
    expect(types.has('api_token') && !types.has('user')).toBe(true);
    const revert = (role: Role) => rest.call('POST', `/api/audit/${shown[0].id}/revert`, { role });
    expect((await revert('operator')).statusCode).toBe(409);
    const others = await rest.call('POST', `/api/audit/${shown[0].id}/revert`, {
      role: 'nobody',
      headers: { authorization: `Bearer ${(await make({ role: 'operator' }, 'admin')).token}` },
    });
    expect(others.statusCode).toBe(404);
  });

  test('pages through the own tokens’ entries among everybody’s without gap or repeat', async () => {
    const whole = (await rest.data('GET', '/api/audit?page_size=200', { role: 'viewer' })).items;
    const found: string[] = [];
    for (let page = 1; ; page += 1) {
      expect(found.length).toBeLessThanOrEqual(whole.length);
      const { items, total } = await rest.data('GET', `/api/audit?page_size=7&page=${page}`, { role: 'viewer' });
      expect(total).toBe(whole.length);
      found.push(...items.map(({ id }: JsonData) => id));
      if (items.length < 7) break;
    }
    expect(found).toEqual(whole.map(({ id }: JsonData) => id));
  });
});

test('the event feed shows entries of a token to its user and to admins, and ends with the token', async () => {
  const { cursor } = await rest.data('GET', '/api/events');
  const { id, token } = await make({}, 'operator');
  const seen = async (role: Role, wait = '&wait_ms=20000') =>
    (await rest.data('GET', `/api/events?after=${cursor}${wait}&resource_id=${id}`, { role })).items;
  expect((await seen('operator')).map(({ data }: JsonData) => [data.action, data.token])).toEqual([
    ['api_token.create', null],
  ]);
  expect(await seen('admin')).toHaveLength(1);
  expect(await seen('viewer', '')).toEqual([]);
  const waiting = by(token, 'GET', '/api/events?wait_ms=20000&types=apply');
  await rest.data('DELETE', `${path}/${id}`, { role: 'operator' });
  expect((await waiting).statusCode).toBe(401);
});
