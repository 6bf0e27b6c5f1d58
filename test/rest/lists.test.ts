/** `docs/contract/rest.md#envelope`: paging, sorting and filters; a value out of range is a 400, never clamped. */
import { setImmediate } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import { createManualClock } from '../support/manual-clock.js';
import { collectionsOf, createMaker, type Maker } from '../support/one-of-each.js';
import { startRest, type JsonData, type RestFixture } from '../support/rest-fixture.js';

let rest: RestFixture;
const ids: string[] = [];
beforeAll(async () => {
  rest = await startRest();
  for (const name of ['bravo', 'Alpha', 'charlie']) {
    const node = await rest.data('POST', '/api/nodes', { body: { name, labels: { site: name, url: 'a:b' } } });
    ids.push(node.id);
  }
});
afterEach(() => vi.restoreAllMocks());
afterAll(async () => {
  await rest.close();
  await still.close();
});

/** Every list of the document that is paged, that of the changes of an entry at the address of one. */
let lists: readonly string[];
let changes: string;
/** Its time stands still, so that sorting by time leaves the order to the ids. */
let still: RestFixture;
let maker: Maker;
const clock = createManualClock();
beforeAll(async () => {
  still = await startRest({}, clock);
  maker = await createMaker(still);
  lists = maker.operations
    .filter(({ method, parameters }) => {
      const names = parameters.map(({ name }) => name);
      // The nodes of a rollout are paged beside it.
      return method === 'GET' && names.includes('page') && names.includes('page_size') && !names.includes('wave');
    })
    .map(({ path }) => path);
  await maker.create('/api/l4-upstreams');
  const [entry] = (await still.data('GET', '/api/audit')).items;
  changes = `/api/audit/${entry.id}/changes`;
  lists = lists.map((path) => path.replace('/api/audit/{id}/changes', changes));
});

async function expectRefused(url: string, query: string, sentence: string): Promise<void> {
  const answer = await still.call('GET', `${url}?${query}`);
  expect([url, query, answer.statusCode, answer.json().error]).toEqual([
    url,
    query,
    400,
    expect.stringContaining(`invalid_request: ${sentence}`),
  ]);
}

test('every resource that can be created has a list, and so have the audit and the changes of an entry', () => {
  expect(lists.toSorted()).toEqual(
    [...collectionsOf(maker.operations), '/api/audit', '/api/incidents', '/api/rollouts', changes].toSorted(),
  );
});

test('every list has pages, and a page past its end is an empty list', async () => {
  for (const url of lists) {
    const page = await still.data('GET', url);
    expect(page).toEqual({ page: 1, page_size: 50, total: expect.any(Number), items: expect.any(Array) });
    const past = await still.data('GET', `${url}?page=9007199254740991&page_size=500`);
    expect(past).toEqual({ items: [], total: page.total, page: 9_007_199_254_740_991, page_size: 500 });
  }
});

const newestFirst = ['/api/audit', '/api/incidents', '/api/rollouts'];

test('every list but those that are newest first sorts by name and times only', async () => {
  for (const url of lists.filter((one) => !newestFirst.some((list) => one.startsWith(list)))) {
    for (const sort of ['name', '-name', 'created_at', '-created_at', 'updated_at', '-updated_at']) {
      expect([url, sort, (await rest.call('GET', `${url}?sort=${sort}`)).statusCode]).toEqual([url, sort, 200]);
    }
    for (const sort of ['id', '+name', '--name', 'Name', '', 'name,id']) {
      await expectRefused(url, `sort=${encodeURIComponent(sort)}`, 'sort: expected');
    }
  }
});

describe('each list of resources', () => {
  const pages = async (url: string, query: string): Promise<readonly JsonData[]> => {
    const items: JsonData[] = [];
    for (let page = 1; ; page += 1) {
      const got = await still.data('GET', `${url}?${query}&page=${page}&page_size=2`);
      items.push(...got.items);
      if (got.items.length < 2) {
        expect([url, got.total]).toEqual([url, items.length]);
        return items;
      }
    }
  };

  test('is sorted by lower-cased code points, by times, then by id, page by page; q finds any part of a name', async () => {
    for (const url of collectionsOf(maker.operations)) {
      const field = 'username' in maker.newBody(url) ? 'username' : 'name';
      // In UTF-16, the letter that takes two units would come before the wide one.
      const named = ['q-a', 'Q-B', 'q-b2', 'q-Z', 'q-z2', 'Q-\u00c9', 'q-\uff5a', 'q-\u{10437}'];
      const names = field === 'name' ? named : ['q-a', 'q-b', 'q-b2', 'q-z'];
      for (const name of names.toReversed()) await maker.create(url, { [field]: name });
      const of = async (query: string) => (await pages(url, query)).map((item) => item[field]);
      expect([url, await of('q=Q-')]).toEqual([url, names]);
      expect([url, await of('q=q-&sort=-name')]).toEqual([url, names.toReversed()]);
      if (field === 'username') expect(await of('q=q-&sort=-username')).toEqual(names.toReversed());
      expect([url, await of('q=-B')]).toEqual([url, names.filter((name) => /-b/i.test(name))]);
      expect(await of('q=Q-a')).toEqual(['q-a']);
      expect(await of('q=nothing-of-this')).toEqual([]);
      if (field === 'name') expect(await of(`q=${encodeURIComponent('e\u0301')}`)).toEqual(['Q-\u00c9']);
      const all = await still.data('GET', `${url}?page_size=500`);
      const idsOf = all.items.map(({ id }: JsonData) => id);
      for (const sort of ['created_at', 'updated_at']) {
        const sorted = await pages(url, `sort=${sort}`);
        expect([url, sorted.map(({ id }) => id)]).toEqual([url, idsOf.toSorted()]);
        const reversed = await pages(url, `sort=-${sort}`);
        expect([url, reversed.map(({ id }) => id).toSorted()]).toEqual([url, idsOf.toSorted()]);
      }
    }
  });

  test('is sorted by the time of creation and of the last change', async () => {
    for (const url of collectionsOf(maker.operations)) {
      clock.advance(1_000);
      const first = await maker.create(url);
      clock.advance(1_000);
      const second = await maker.create(url);
      const newest = async (sort: string) =>
        (await still.data('GET', `${url}?sort=${sort}&page_size=2`)).items.map(({ id }: JsonData) => id);
      expect([url, await newest('-created_at')]).toEqual([url, [second.id, first.id]]);
      const one = await still.call('GET', `${url}?page_size=1&sort=created_at`);
      expect(one.json().data.items[0].created_at < first.created_at).toBe(true);
      if (!maker.operations.some(({ method, path }) => method === 'PUT' && path === `${url}/{id}`)) continue;
      clock.advance(1_000);
      const change = 'endpoint' in first ? { endpoint: 'changed.example:1' } : { name: `changed ${url}` };
      await still.data('PUT', `${url}/${first.id}`, { body: change });
      expect([url, await newest('-updated_at')]).toEqual([url, [first.id, second.id]]);
      expect([url, await newest('-created_at')]).toEqual([url, [second.id, first.id]]);
    }
  });
});

test('hops, ports, links and deployments are whole lists', async () => {
  const { id: chain } = await maker.create('/api/l4-chains');
  const { id: route } = await maker.create('/api/routes');
  for (const url of [`/api/l4-chains/${chain}/deployments`, `/api/routes/${route}/hops`, '/api/nodes/links']) {
    expect([url, Object.keys(await still.data('GET', url))]).toEqual([url, ['items']]);
    await expectRefused(url, 'page=1', 'page: not a query parameter');
  }
  expect(Object.keys(await still.data('GET', '/api/nodes/ports'))).toEqual(['nodes', 'items', 'defaultPriorityOrder']);
});

test('the audit is searched by the names of resources and actors, and takes no sort', async () => {
  expect((await rest.call('GET', '/api/audit?sort=name')).statusCode).toBe(400);
  const named = async (query: string): Promise<(string | null)[]> =>
    (await rest.data('GET', `/api/audit?${query}`)).items.map(({ resource }: JsonData) => resource.name);
  expect(await named('q=ALPH')).toEqual(['Alpha']);
  expect(await named('q=dmin&resource_type=node')).toEqual(['charlie', 'Alpha', 'bravo']);
  expect(await named('q=alpha&not_resource_type=user,node')).toEqual([]);
  expect(await named('not_resource_type=node,service,user&resource_id=x')).toEqual([]);
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
  expect(await names('label=site')).toEqual(['Alpha', 'bravo', 'charlie']);
  expect(await names('label=nowhere')).toEqual([]);
  expect(await names('label=url:a:b')).toEqual(['Alpha', 'bravo', 'charlie']);
  expect(await names('label=url&label=site:bravo')).toEqual(['bravo']);
  expect(await names('label=site:Alpha&label=site:bravo')).toEqual([]);
  for (const query of ['label=:x', 'label=', 'status=up', 'status=', 'q=', 'apply=fine', 'sort=last_seen']) {
    expect([query, (await rest.call('GET', `/api/nodes?${query}`)).statusCode]).toEqual([query, 400]);
  }
});

test('the key of a label has no colon, which separates it from its value in a filter', async () => {
  for (const key of ['a:b', 'k'.repeat(64), '']) {
    const body = { name: `label ${key}`, labels: { [key]: 'x' } };
    expect([key, (await rest.call('POST', '/api/nodes', { body })).json().error]).toEqual([
      key,
      expect.stringContaining('expected a key of 1 to 63 characters without ":"'),
    ]);
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

test('nodes are filtered by how far they are with their newest generation, and sorted by when they were last seen', async () => {
  const own = await startRest();
  try {
    const made: { readonly [name: string]: string } = Object.fromEntries(
      await Promise.all(
        ['a', 'b', 'c', 'd'].map(async (name) => [name, (await own.data('POST', '/api/nodes', { body: { name } })).id]),
      ),
    );
    const names = async (query: string): Promise<string[]> =>
      (await own.data('GET', `/api/nodes?${query}`)).items.map((node: JsonData) => node.name);
    const applies = async (name: string): Promise<string> =>
      (await own.data('GET', `/api/nodes/${made[name]}`)).apply.state;
    for (const [name, answer] of [
      ['c', 'apply'],
      ['a', 'reject'],
      ['b', undefined],
    ] as const) {
      const agent = await own.connect(made[name] ?? '');
      await own.data('POST', `/api/nodes/${made[name]}/config`);
      const push = await agent.receive();
      if (answer !== undefined) await agent[answer](push);
      const seen = Date.now();
      while (Date.now() <= seen) await setImmediate();
    }
    await expect
      .poll(() => Promise.all(['a', 'b', 'c', 'd'].map(applies)), { timeout: 20_000 })
      .toEqual(['rejected', 'pushed', 'applied', 'none']);
    expect(await names('apply=rejected')).toEqual(['a']);
    expect(await names('apply=pushed')).toEqual(['b']);
    expect(await names('apply=applied')).toEqual(['c']);
    expect(await names('apply=none')).toEqual(['d']);
    expect(await names('apply=rejected&status=pending')).toEqual([]);
    expect(await names('sort=last_seen_at')).toEqual(['c', 'a', 'b', 'd']);
    expect(await names('sort=-last_seen_at')).toEqual(['b', 'a', 'c', 'd']);
    expect(await names('sort=-last_seen_at&status=online&q=A')).toEqual(['a']);
    expect(await own.data('GET', '/api/nodes?sort=last_seen_at&page=2&page_size=3')).toMatchObject({
      total: 4,
      page: 2,
      items: [{ name: 'd', last_seen_at: null }],
    });
  } finally {
    await own.close();
  }
});

test('chains are filtered by what either of their definitions uses, and credentials by the end of their certificates', async () => {
  const node = (await rest.data('POST', '/api/nodes', { body: { name: 'used' } })).id;
  const [first, second] = await Promise.all(
    ['one', 'two'].map(async (name) => {
      const body = { name, endpoint: '192.0.2.1:1' };
      return (await rest.data('POST', '/api/l4-upstreams', { body })).id;
    }),
  );
  const certificate = async (name: string, days: number) =>
    rest.data('POST', '/api/credentials', {
      body: { name, key_type: 'tls_cert', self_signed: { common_name: 'app.example', days } },
    });
  const short = await certificate('short', 2);
  const long = await certificate('long', 300);
  await rest.data('POST', '/api/credentials', { body: { name: 'keys', key_type: 'x25519' } });
  const hop = { node_id: node, listen_port: 443, outer: 'tcp', security: 'tls', credential_id: short.id };
  const body = {
    name: 'by use',
    payload: 'tcp',
    hops: [{ ...hop, server_names: ['app.example'] }],
    target: { upstream_id: first },
  };
  const chain = await rest.data('POST', '/api/l4-chains', { body });
  await rest.data('POST', `/api/l4-chains/${chain.id}/deploy`);
  await rest.data('PUT', `/api/l4-chains/${chain.id}`, {
    body: {
      hops: [{ ...hop, security: 'raw', credential_id: undefined, node_id: ids[0] }],
      target: { upstream_id: second },
    },
  });
  const found = async (query: string): Promise<string[]> =>
    (await rest.data('GET', `/api/l4-chains?${query}`)).items.map((one: JsonData) => one.name);
  for (const query of [`node_id=${node}`, `node_id=${ids[0]}`, `upstream_id=${first}`, `upstream_id=${second}`]) {
    expect([query, await found(query)]).toEqual([query, ['by use']]);
  }
  expect(await found(`credential_id=${short.id}`)).toEqual(['by use']);
  expect(await found(`credential_id=${short.id}&status=modified&node_id=${node}`)).toEqual(['by use']);
  expect(await found(`credential_id=${short.id}&status=draft`)).toEqual([]);
  // Each definition has one of the two.
  expect(await found(`upstream_id=${second}&credential_id=${short.id}`)).toEqual([]);
  expect(await found(`credential_id=${long.id}`)).toEqual([]);
  expect(await found('node_id=00000000-0000-4000-8000-000000000000')).toEqual([]);
  for (const q of ['USED', 'BRAVO', ':443', '0.0.0.0:443', 'by use'])
    expect([q, await found(`q=${q}`)]).toEqual([q, ['by use']]);
  for (const q of ['used', 'bravo']) expect(await found(`q=${q}&status=modified`)).toEqual(['by use']);
  for (const q of [':444', 'alpha', '192.0.2.1:1']) expect([q, await found(`q=${q}`)]).toEqual([q, []]);
  for (const query of ['node_id=x', 'upstream_id=', 'credential_id=1']) {
    expect([query, (await rest.call('GET', `/api/l4-chains?${query}`)).statusCode]).toEqual([query, 400]);
  }

  const ending = async (query: string): Promise<string[]> =>
    (await rest.data('GET', `/api/credentials?${query}`)).items.map((one: JsonData) => one.name);
  const end = Date.parse(short.certificate.not_after);
  expect(await ending(`expires_before=${new Date(end + 1_000).toISOString()}`)).toEqual(['short']);
  expect(await ending(`expires_before=${new Date(end).toISOString()}`)).toEqual([]);
  expect(await ending('expires_before=9999-01-01T00:00:00Z&key_type=tls_cert')).toEqual(['long', 'short']);
  expect((await rest.call('GET', '/api/credentials?expires_before=soon')).statusCode).toBe(400);
  expect(await ending('sort=not_after')).toEqual(['short', 'long', 'keys']);
  expect(await ending('sort=-not_after&page_size=2&page=2')).toEqual(['keys']);
  expect(await ending('sort=-not_after&key_type=tls_cert')).toEqual(['long', 'short']);
});

test('audit filters are validated, and times in them are converted to UTC', async () => {
  const list = vi.spyOn(rest.deps.projections.audit, 'list');
  const good =
    'resource_type=l4_chain,node&not_resource_type=session&q=Edge&resource_id=x&actor=admin&action=l4_chain.deploy&from=2030-01-31T12:00:00%2B02:00&to=2030-02-01T00:00:00z';
  await rest.data('GET', `/api/audit?${good}`);
  expect(list).toHaveBeenLastCalledWith({
    page: 1,
    pageSize: 50,
    resourceTypes: ['l4_chain', 'node'],
    notResourceTypes: ['session'],
    q: 'Edge',
    resourceId: 'x',
    actor: 'admin',
    action: 'l4_chain.deploy',
    from: '2030-01-31T10:00:00.000Z',
    to: '2030-02-01T00:00:00.000Z',
    includeAccounts: true,
    ownTokensOf: expect.any(String),
  });
  for (const query of [
    'resource_type=chain',
    'resource_type=node,',
    'not_resource_type=',
    'q=',
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
