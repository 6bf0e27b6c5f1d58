/** `docs/contract/rest.md#envelope`: paging, sorting and filters; a value out of range is a 400, never clamped. */
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import type { Role } from '../../src/domain/accounts/user.js';
import { startRest } from '../support/rest-fixture.js';
import type { RestFixture } from '../support/rest-fixture.js';
import { endpoints } from './endpoints.js';

let rest: RestFixture;
const ids: string[] = [];
beforeAll(async () => {
  rest = await startRest();
  for (const name of ['bravo', 'Alpha', 'charlie']) {
    const node = await rest.data('POST', '/api/nodes', { body: { name, labels: { site: name, 'a:b': 'c' } } });
    ids.push(node.id);
  }
});
afterEach(() => vi.restoreAllMocks());
afterAll(() => rest.close());

const lists = ['/api/auth/users', '/api/nodes', '/api/l4-upstreams', '/api/l4-chains', '/api/audit'];

describe.each(lists)('%s', (url) => {
  test('accepts page and page_size within their bounds only', async () => {
    const page = await rest.data('GET', url);
    expect(page).toMatchObject({ page: 1, page_size: 50, total: expect.any(Number), items: expect.any(Array) });
    expect(await rest.data('GET', `${url}?page=9007199254740991&page_size=500`)).toMatchObject({ page_size: 500 });
    for (const query of [
      'page=0',
      'page=-1',
      'page=1.0',
      'page=',
      'page=x',
      'page=9007199254740993',
      'page=1&page=1',
    ]) {
      const answer = await rest.call('GET', `${url}?${query}`);
      expect([query, answer.statusCode, answer.json().error]).toEqual([
        query,
        400,
        expect.stringContaining('page: expected an integer'),
      ]);
    }
    for (const query of ['page_size=0', 'page_size=501', 'page_size=1e2', 'page_size=%2010', 'page_size']) {
      const answer = await rest.call('GET', `${url}?${query}`);
      expect([query, answer.statusCode, answer.json().error]).toEqual([
        query,
        400,
        expect.stringContaining('page_size: expected'),
      ]);
    }
  });

  test('refuses an unknown query parameter by its name', async () => {
    for (const name of ['limit', 'Page', 'page_size[]', '__proto__', 'constructor']) {
      const answer = await rest.call('GET', `${url}?${encodeURIComponent(name)}=1`);
      expect([name, answer.statusCode, answer.json().error]).toEqual([
        name,
        400,
        `invalid_request: ${name}: not a query parameter of this request`,
      ]);
    }
  });
});

test('every endpoint without query parameters refuses one', async () => {
  for (const one of endpoints) {
    if (lists.includes(one.path) && one.method === 'GET') continue;
    const url = `${one.path.replace('{id}', ids[0]!)}?verbose=1`;
    const answer = await rest.call(one.method, url, one.body === null ? {} : { body: one.body });
    expect([url, answer.statusCode, answer.json().error]).toEqual([
      url,
      400,
      expect.stringContaining('verbose: not a query parameter'),
    ]);
  }
});

test.each(lists.slice(0, 4))('%s sorts by name and times only', async (url) => {
  for (const sort of ['name', '-name', 'created_at', '-created_at', 'updated_at', '-updated_at']) {
    expect((await rest.call('GET', `${url}?sort=${sort}`)).statusCode).toBe(200);
  }
  for (const sort of ['id', '+name', '--name', 'Name', '', 'name,id']) {
    const answer = await rest.call('GET', `${url}?sort=${encodeURIComponent(sort)}`);
    expect([sort, answer.statusCode]).toEqual([sort, 400]);
  }
});

test('the audit takes neither sort nor q', async () => {
  for (const query of ['sort=name', 'q=x'])
    expect((await rest.call('GET', `/api/audit?${query}`)).statusCode).toBe(400);
});

test('nodes are paged, sorted, searched by name and filtered by label', async () => {
  const names = async (query: string) =>
    (await rest.data('GET', `/api/nodes?${query}`)).items.map((node: { name: string }) => node.name);
  expect(await names('')).toEqual(['Alpha', 'bravo', 'charlie']);
  expect(await names('sort=-name&page_size=2')).toEqual(['charlie', 'bravo']);
  expect(await names('sort=-name&page_size=2&page=2')).toEqual(['Alpha']);
  expect(await names('page=99')).toEqual([]);
  expect(await names('q=ALPH')).toEqual(['Alpha']);
  expect(await names('label=site:bravo')).toEqual(['bravo']);
  expect(await names('label=a:b')).toEqual([]);
  for (const query of ['label=site', 'label=:x', 'label=a:b&label=c:d', 'status=up', 'status=', 'q=']) {
    expect([query, (await rest.call('GET', `/api/nodes?${query}`)).statusCode]).toEqual([query, 400]);
  }
});

test('the status of nodes comes from presence', async () => {
  const [bravo = '', alpha = ''] = ids;
  await rest.connect(bravo);
  await (await rest.connect(alpha)).disconnect();
  const names = async (status: string) => (await rest.data('GET', `/api/nodes?status=${status}`)).items;
  expect(await names('online')).toMatchObject([{ name: 'bravo', status: 'online', cpu_usage: 0.25 }]);
  expect(await names('offline')).toMatchObject([
    { name: 'Alpha', status: 'offline', last_seen_at: expect.any(String) },
  ]);
  expect(await names('pending')).toMatchObject([
    { name: 'charlie', status: 'pending', cpu_usage: null, last_seen_at: null },
  ]);
});

test('audit filters are validated, and times in them are converted to UTC', async () => {
  const list = vi.spyOn(rest.deps.projections.audit, 'list');
  const good =
    'resource_type=l4_chain&resource_id=x&actor=admin&action=l4_chain.deploy&from=2030-01-31T12:00:00%2B02:00&to=2030-02-01T00:00:00z';
  await rest.data('GET', `/api/audit?${good}`);
  expect(list).toHaveBeenLastCalledWith({
    page: 1,
    pageSize: 50,
    resourceType: 'l4_chain',
    resourceId: 'x',
    actor: 'admin',
    action: 'l4_chain.deploy',
    from: '2030-01-31T10:00:00.000Z',
    to: '2030-02-01T00:00:00.000Z',
    includeAccounts: true,
  });
  for (const query of [
    'resource_type=chain',
    'action=deploy',
    'action=l4_chain.explode',
    'action=node.create.x',
    'from=2030-02-30T00:00:00Z',
    'from=2030-01-31',
    'to=yesterday',
    'to=1',
  ]) {
    expect([query, (await rest.call('GET', `/api/audit?${query}`)).statusCode]).toEqual([query, 400]);
  }
});

test('audit entries about accounts are answered to admins only', async () => {
  const types = async (role: Role) =>
    new Set(
      (await rest.data('GET', '/api/audit', { role })).items.map(
        ({ resource }: { resource: { type: string } }) => resource.type,
      ),
    );
  expect(await types('admin')).toContain('user');
  for (const role of ['operator', 'viewer'] as const) {
    expect(await types(role)).toContain('node');
    expect(await types(role)).not.toContain('user');
  }
});

test('an audit entry is answered as the read model holds it', async () => {
  const entry = {
    id: 'e',
    at: '2030-01-01T00:00:00.000Z',
    actor: { type: 'user' as const, id: 'u', name: 'admin' },
    action: 'node.update',
    resource: { type: 'node', id: 'n', name: 'x' },
    changes: [{ path: 'labels.a', before: null, after: { deep: [1, 'x', null] } }],
    request_id: 'r',
    position: 'svc-fleet@3',
    revertible: true,
    not_revertible_because: null,
    reverts: null,
    reverted_by: null,
  };
  vi.spyOn(rest.deps.projections.audit, 'list').mockResolvedValue({ items: [entry], total: 1 });
  expect(await rest.data('GET', '/api/audit')).toEqual({ items: [entry], total: 1, page: 1, page_size: 50 });
});
