/**
 * `docs/contract/rest.md#consistency`, ETag and If-Match: every operation of the OpenAPI document that takes a version, each
 * with every form of the header.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { validValue } from '../support/openapi-values.js';
import type { Operation } from '../support/openapi-document.js';
import { collectionsOf, createMaker, type Maker } from '../support/one-of-each.js';
import { startRest, unknownId, type RestFixture } from '../support/rest-fixture.js';

let rest: RestFixture;
let maker: Maker;
beforeAll(async () => {
  rest = await startRest();
  maker = await createMaker(rest);
});
afterAll(() => rest.close());

const conditional = (): readonly Operation[] =>
  maker.operations.filter(({ parameters }) => parameters.some(({ name }) => name === 'if-match'));
/** But for a candidate, which a node does not have when it is made: `guided-rotation.test.ts` has that. */
const ofResources = (): readonly Operation[] =>
  conditional().filter(({ path }) => path.includes('{id}') && !path.endsWith('/candidate'));
const collectionOf = ({ path }: Operation): string => path.slice(0, path.indexOf('/{'));

/** What the operation sends: nothing, or a body that changes nothing. */
function bodyOf({ body }: Operation): { readonly body?: object } {
  return body === undefined ? {} : { body: validValue(maker.document, body, '', maker.ids) as object };
}

const nameOf = ({ method, path }: Operation): string => `${method} ${path}`;

test('PUT, DELETE and deploy of every resource honour If-Match, and so do the account, policies and settings', () => {
  const expected = maker.operations.filter(
    ({ method, path }) =>
      path.startsWith('/api/') &&
      (method === 'PUT' || method === 'DELETE' || path.endsWith('/deploy') || path === '/api/fleet/apply'),
  );
  expect(conditional().map(nameOf)).toEqual(expected.map(nameOf));
  expect(ofResources().length).toBeGreaterThan(10);
});

describe('GET of one', () => {
  test('sends the version as its ETag, and never a 304', async () => {
    const collections = collectionsOf(maker.operations);
    const gets = maker.operations.filter(
      (one) => one.method === 'GET' && one.path.endsWith('/{id}') && collections.includes(collectionOf(one)),
    );
    expect(gets.length).toBeGreaterThan(5);
    const urls = await Promise.all(
      gets.map(async (one) => `${collectionOf(one)}/${(await maker.create(collectionOf(one))).id}`),
    );
    for (const url of [...urls, '/api/auth/me', '/api/settings/connectivity']) {
      const answer = await rest.call('GET', url);
      const { version } = answer.json().data;
      expect([url, answer.headers['etag']]).toEqual([url, `"${version}"`]);
      const again = await rest.call('GET', url, { headers: { 'if-none-match': `"${version}"` } });
      expect([url, again.statusCode]).toEqual([url, 200]);
    }
  });
});

describe('If-Match', () => {
  test('that does not hold the version is a 412 and writes nothing, also where nothing would change', async () => {
    for (const one of ofResources()) {
      const { id, version } = await maker.create(collectionOf(one));
      const url = one.path.replace('{id}', id);
      const before = await rest.position();
      const v = String(version);
      for (const tag of [
        `"${version + 1}"`,
        '"0", "77"',
        `W/"${v}"`,
        `"${v}.0"`,
        `"0${v}"`,
        '"abc"',
        '""',
        `"9,${v}"`,
      ]) {
        const answer = await rest.call(one.method, url, { ...bodyOf(one), headers: { 'if-match': tag } });
        expect([nameOf(one), tag, answer.statusCode]).toEqual([nameOf(one), tag, 412]);
        expect(answer.json().error).toMatch(/^precondition_failed: .*expected/);
      }
      expect([nameOf(one), await rest.position()]).toEqual([nameOf(one), before]);
    }
  });

  test('that is the version, a list with it, or * is passed', async () => {
    for (const one of ofResources()) {
      for (const tag of ['"<version>"', '"77", W/"<version>" ,, "a,b","<version>"', '*', ' * ']) {
        const { id, version } = await maker.create(collectionOf(one));
        const headers = { 'if-match': tag.replaceAll('<version>', String(version)) };
        const answer = await rest.call(one.method, one.path.replace('{id}', id), { ...bodyOf(one), headers });
        expect([nameOf(one), tag, answer.statusCode]).toEqual([nameOf(one), tag, 200]);
        if (one.method === 'DELETE') expect(answer.json()).toEqual({ success: true, data: {}, error: null });
        const gone = await rest.call('DELETE', `${collectionOf(one)}/${id}`);
        // Nobody deletes a user.
        const deleted = collectionOf(one) === '/api/auth/users' ? 405 : 200;
        expect(gone.statusCode).toBe(one.method === 'DELETE' ? 404 : deleted);
      }
    }
  });

  test('is looked at after the 404 of the resource, * included', async () => {
    for (const one of ofResources()) {
      for (const tag of ['*', '"1"']) {
        const url = one.path.replace('{id}', unknownId);
        const answer = await rest.call(one.method, url, { ...bodyOf(one), headers: { 'if-match': tag } });
        expect([nameOf(one), tag, answer.statusCode]).toEqual([nameOf(one), tag, 404]);
      }
    }
  });

  test('of the account', async () => {
    const url = '/api/auth/me';
    const put = async (tag: string, display_name: string) =>
      (await rest.call('PUT', url, { body: { display_name }, headers: { 'if-match': tag } })).statusCode;
    const { version } = await rest.data('GET', url);
    for (const tag of [`"${version + 1}"`, `W/"${version}"`]) expect([tag, await put(tag, 'a')]).toEqual([tag, 412]);
    expect(await put(`"${version}"`, 'b')).toBe(200);
    expect(await put(`"${version}"`, 'c')).toBe(412);
    expect(await put(`"7", "${version + 1}"`, 'd')).toBe(200);
    expect(await put('*', 'e')).toBe(200);
  });

  test('of the settings, which are nothing until they are saved', async () => {
    const url = '/api/settings/connectivity';
    const put = async (tag: string, metrics_interval_secs: number) =>
      (await rest.call('PUT', url, { body: { metrics_interval_secs }, headers: { 'if-match': tag } })).statusCode;
    expect((await rest.call('GET', url)).headers['etag']).toBe('"0"');
    expect(await put('*', 31)).toBe(412);
    expect(await put('"1"', 32)).toBe(412);
    expect(await put('"0"', 33)).toBe(200);
    expect(await put('"0"', 34)).toBe(412);
    expect(await put('"9", "1"', 35)).toBe(200);
    expect(await put('*', 36)).toBe(200);
    expect((await rest.call('GET', url)).headers['etag']).toBe('"3"');
  });

  test('of a policy, which is nothing until it is saved; its answer sends the ETag', async () => {
    const url = '/api/nodes/ports/policies';
    const { id } = await maker.create('/api/nodes');
    const named = { nodeId: id, transport: 'tcp', listenAddr: '0.0.0.0', listenPort: 80 };
    const put = (tag: string, priorityOrder: readonly string[]) =>
      rest.call('PUT', url, { body: { ...named, priorityOrder }, headers: { 'if-match': tag } });
    const query = new URLSearchParams(
      Object.entries(named).map(([key, value]): [string, string] => [key, String(value)]),
    );
    const remove = async (tag: string) =>
      (await rest.call('DELETE', `${url}?${query.toString()}`, { headers: { 'if-match': tag } })).statusCode;
    const before = await rest.position();
    for (const tag of ['*', '"1"']) expect((await put(tag, ['raw'])).statusCode).toBe(412);
    expect(await rest.position()).toBe(before);
    const saved = await rest.call('PUT', url, { body: { ...named, priorityOrder: ['raw'] } });
    const { version } = saved.json().data;
    expect(saved.headers['etag']).toBe(`"${version}"`);
    expect((await put(`W/"${version}"`, ['tls'])).statusCode).toBe(412);
    expect((await put(`"99", "${version}"`, ['tls'])).headers['etag']).toBe(`"${version + 1}"`);
    expect((await put('*', ['noise'])).headers['etag']).toBe(`"${version + 2}"`);
    expect(await remove(`"${version}"`)).toBe(412);
    expect(await remove(`"${version + 2}"`)).toBe(200);
  });
});
