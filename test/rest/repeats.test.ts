/**
 * `docs/contract/rest.md#consistency`, Idempotency-Key: on every POST of the OpenAPI document but the login. How long a key
 * counts, across restarts and instances, is in `test/commands/idempotency.test.ts`.
 */
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import type { Operation } from '../support/openapi-document.js';
import { collectionsOf, createMaker, sessionPaths, type Maker } from '../support/one-of-each.js';
import { password, startRest, type JsonData, type RestFixture } from '../support/rest-fixture.js';

let rest: RestFixture;
let maker: Maker;
beforeAll(async () => {
  rest = await startRest();
  maker = await createMaker(rest);
});
afterAll(() => rest.close());
afterEach(() => vi.restoreAllMocks());

/** Secrets that are shown once. */
const oneTime = ['control_psk', 'secret', 'token'];

/** Without what goes on by itself. */
const still = ({
  lag: _lag,
  cursor: _cursor,
  last_delivery: _last,
  warnings: _warnings,
  ...data
}: JsonData): JsonData => data;
const withKey = (key: string, body?: unknown) => ({
  headers: { 'idempotency-key': key },
  ...(body === undefined ? {} : { body }),
});

const posts = (): readonly Operation[] =>
  maker.operations.filter(({ method, path }) => method === 'POST' && !sessionPaths.includes(path));

/** The answer of a repeat: the first one, less what is shown once. */
function repeated(first: JsonData): JsonData {
  const hidden = oneTime.filter((field) => field in first);
  return { ...first, ...Object.fromEntries(hidden.map((field) => [field, null])) };
}

test('every POST but the login and the logout takes a key', () => {
  for (const { path, parameters } of posts()) {
    expect([path, parameters.some(({ name }) => name === 'idempotency-key')]).toEqual([path, true]);
  }
});

describe('a repeated create', () => {
  test('gets the first status with the resource as it now is, less its secret, and writes nothing', async () => {
    for (const path of collectionsOf(maker.operations)) {
      const body = maker.newBody(path);
      const first = await rest.call('POST', path, withKey('k', body));
      expect([path, first.statusCode]).toEqual([path, 201]);
      const { id } = first.json().data;
      expect(first.headers['location']).toBe(`${path}/${id}`);
      const put = maker.operations.find((one) => one.method === 'PUT' && one.path === `${path}/{id}`);
      if (put !== undefined) {
        const change = 'endpoint' in body ? { endpoint: 'later.example:1' } : { name: `later ${path}` };
        await rest.data('PUT', `${path}/${id}`, { body: change });
      }
      const before = await rest.position();
      const again = await rest.call('POST', path, withKey('k', body));
      expect([path, again.statusCode, again.headers['location']]).toEqual([path, 201, first.headers['location']]);
      const now = await rest.data('GET', `${path}/${id}`);
      // The line to paste holds a token.
      const shownOnce = [...oneTime, 'command'].filter((field) => field in first.json().data);
      expect(still(again.json().data)).toEqual({
        ...still(now),
        ...Object.fromEntries(shownOnce.map((field) => [field, null])),
      });
      expect(again.headers['x-position']).toBe(first.headers['x-position']);
      expect([path, await rest.position()]).toEqual([path, before]);
    }
  });

  test('with other bytes is a 409 and one of a resource that is gone a 404; both write nothing', async () => {
    for (const path of collectionsOf(maker.operations)) {
      const text = JSON.stringify(maker.newBody(path));
      const { id } = await rest.data('POST', path, withKey('bytes', text));
      const other = await rest.call('POST', path, withKey('bytes', `${text} `));
      expect([path, other.statusCode]).toEqual([path, 409]);
      expect(other.json().error).toMatch(/^conflict: .*dempotency-/);
      if (!maker.operations.some((one) => one.method === 'DELETE' && one.path === `${path}/{id}`)) continue;
      await rest.data('DELETE', `${path}/${id}`);
      const before = await rest.position();
      expect([path, (await rest.call('POST', path, withKey('bytes', text))).statusCode]).toEqual([path, 404]);
      expect(await rest.position()).toBe(before);
    }
  });

  test('after a refusal is a first one: neither 400 nor 409 uses the key up', async () => {
    for (const path of collectionsOf(maker.operations)) {
      const taken = maker.newBody(path);
      await rest.data('POST', path, { body: taken });
      const refused = await rest.call('POST', path, withKey('refused', taken));
      expect([path, refused.statusCode]).toEqual([path, 409]);
      const unknown = await rest.call('POST', path, withKey('refused', { ...taken, nope: 1 }));
      expect([path, unknown.statusCode]).toEqual([path, 400]);
      const made = await rest.call('POST', path, withKey('refused', maker.newBody(path)));
      expect([path, made.statusCode]).toEqual([path, 201]);
    }
  });

  test('by another caller is a first one', async () => {
    for (const path of collectionsOf(maker.operations).filter((one) => !/^.api.(auth|webhooks)/.test(one))) {
      const mine = await rest.data('POST', path, withKey('mine', maker.newBody(path)));
      const theirs = await rest.data('POST', path, { ...withKey('mine', maker.newBody(path)), role: 'operator' });
      expect([path, theirs.id === mine.id]).toEqual([path, false]);
    }
  });
});

test('a repeated POST on a resource answers as the first one did, less its secret, and writes nothing', async () => {
  // A ping is no command: each one is sent.
  const onResources = posts().filter(({ path }) => path.includes('{id}') && !path.endsWith('/ping'));
  expect(onResources.length).toBeGreaterThan(3);
  for (const one of onResources) {
    const { url, id, body } = await maker.onNew(one);
    const first = await rest.call('POST', url, withKey('k', body));
    expect([url, first.statusCode, first.json().error]).toEqual([url, 200, null]);
    const before = await rest.position();
    const again = await rest.call('POST', url, withKey('k', body));
    expect([url, again.statusCode]).toEqual([url, 200]);
    expect(still(again.json().data)).toEqual(still(repeated(first.json().data)));
    expect(await rest.position()).toBe(before);
    // Compared by its bytes: `{}` is another body than none.
    const other = await rest.call('POST', url, withKey('k', body === undefined ? '{}' : `${JSON.stringify(body)} `));
    expect([url, other.statusCode]).toEqual([url, 409]);
    expect(await rest.position()).toBe(before);
    const resource = url.slice(0, url.indexOf(id) + id.length);
    if (!maker.operations.some(({ method, path }) => method === 'DELETE' && path === resource.replace(id, '{id}')))
      continue;
    await rest.data('DELETE', resource);
    expect([url, (await rest.call('POST', url, withKey('k', body))).statusCode]).toEqual([url, 404]);
  }
});

describe('an Idempotency-Key', () => {
  const key = (value: string) => ({ 'idempotency-key': value });

  test('a key counts per caller, path and body bytes; the log holds only hashes', async () => {
    const post = (url: string, body: string, role: 'admin' | 'operator', value: string) =>
      rest.call('POST', url, { body, role, headers: key(value) });
    const logged = (await rest.log()).length;
    expect((await post('/api/nodes', '{"name":"a"}', 'admin', 'key')).statusCode).toBe(201);
    expect((await post('/api/nodes', '{"name": "a"}', 'admin', 'key')).statusCode).toBe(409);
    expect((await post('/api/nodes', '{"name":"b"}', 'operator', 'key')).statusCode).toBe(201);
    expect((await post('/api/l4-upstreams', '{"name":"a","endpoint":"a:1"}', 'admin', 'key')).statusCode).toBe(201);
    expect((await post('/api/nodes', '{"name":"c"}', 'admin', 'other')).statusCode).toBe(201);
    const marks = (await rest.log()).slice(logged).flatMap((event) => event.metadata.idempotency ?? []);
    expect(new Set(marks.map((mark) => mark.key_hash)).size).toBe(4);
    for (const mark of marks) {
      expect(mark.key_hash).toMatch(/^[0-9a-f]{64}$/);
      expect(mark.body_hash).toMatch(/^[0-9a-f]{64}$/);
    }
  });

  test('a key of 128 characters is accepted', async () => {
    const body = { name: 'long key' };
    expect((await rest.call('POST', '/api/nodes', { body, headers: key('a'.repeat(128)) })).statusCode).toBe(201);
  });

  test('a PUT and the login ignore the header', async () => {
    const { id: nodeId } = await maker.create('/api/nodes');
    for (const name of ['x', 'y']) {
      await rest.data('PUT', `/api/nodes/${nodeId}`, { body: { name: `ignored ${name}` }, headers: key('ignored') });
      const event = (await rest.log()).at(-1);
      expect([event?.type, event?.metadata.idempotency]).toEqual(['NodeUpdated', undefined]);
    }
    const body = { username: 'admin', password };
    expect((await rest.call('POST', '/api/auth/login', { body, headers: key('a b') })).statusCode).toBe(200);
  });
});
