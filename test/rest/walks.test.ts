/**
 * Walks over lists, the natural order of names, and what `q` finds of a node (`docs/contract/rest.md#envelope`).
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startRest, type JsonData, type RestFixture } from '../support/rest-fixture.js';

let rest: RestFixture;
beforeAll(async () => {
  rest = await startRest();
});
afterAll(() => rest.close());

describe('a walk', () => {
  /** The names that a walk shows; `between` runs after each step. */
  async function walk(query: string, between: (step: number) => Promise<void> = async () => undefined) {
    const names: string[] = [];
    let after: string | null = 'start';
    for (let step = 0; after !== null; step += 1) {
      expect(step).toBeLessThan(50);
      const got: JsonData = await rest.data('GET', `/api/nodes?page_size=3&after=${after}${query}`);
      expect(Object.keys(got).sort()).toEqual(['items', 'next', 'page_size', 'total']);
      names.push(...got.items.map(({ name }: JsonData) => name));
      after = got.next;
      await between(step);
    }
    return names;
  }

  test('shows what exists throughout exactly once, whatever is made, renamed and deleted meanwhile', async () => {
    const make = (name: string) => rest.data('POST', '/api/nodes', { body: { name } }) as Promise<{ id: string }>;
    const kept: string[] = [];
    const others: { id: string }[] = [];
    for (let index = 0; index < 12; index += 1) {
      kept.push(`walk kept ${index}`);
      await make(`walk kept ${index}`);
      others.push(await make(`walk other ${index}`));
    }
    const between = async (step: number): Promise<void> => {
      const [one, two] = [others[2 * step], others[2 * step + 1]];
      if (one !== undefined) await rest.data('PUT', `/api/nodes/${one.id}`, { body: { name: `walk 0 ${step}` } });
      if (two !== undefined) await rest.data('DELETE', `/api/nodes/${two.id}`);
      if (step < 5) await make(`walk new ${step}`);
    };
    const names = await walk('&q=walk', between);
    expect(names.filter((name) => name.startsWith('walk kept'))).toEqual(kept);
    expect(new Set(names).size).toBe(names.length);
    expect((await walk('&q=walk%20kept&sort=-created_at')).toReversed()).toEqual(kept);
  });

  test('of the audit is newest first, over all entries of a filter', async () => {
    const ids: string[] = [];
    let after: string | null = 'start';
    for (let step = 0; after !== null; step += 1) {
      expect(step).toBeLessThan(100);
      const got: JsonData = await rest.data('GET', `/api/audit?action=node.create&page_size=2&after=${after}`);
      ids.push(...got.items.map(({ id }: JsonData) => id));
      after = got.next;
    }
    const { items } = await rest.data('GET', '/api/audit?action=node.create&page_size=500');
    expect(ids).toEqual(items.map(({ id }: JsonData) => id));
  });

  test('goes by its own filters and its own order alone', async () => {
    const { next } = await rest.data('GET', '/api/nodes?after=start&page_size=1&q=e');
    for (const [query, sentence] of [
      ['after=start&page=2', 'page: expected none beside after'],
      ['after=start&sort=name', 'sort: expected created_at or -created_at'],
      ['after=nonsense', 'after: expected start'],
      [`after=${next}&q=x`, 'after: this next belongs to a list with other filters'],
      [`after=${next}&q=e&sort=-created_at`, 'after: this next belongs to a list with other filters'],
    ] as const) {
      const answer = await rest.call('GET', `/api/nodes?${query}`);
      expect([query, answer.statusCode, answer.json().error]).toEqual([query, 400, expect.stringContaining(sentence)]);
    }
  });
});

test('names sort naturally: runs of digits by their number, leading zeros aside', async () => {
  const sorted = async (sort: string): Promise<string[]> =>
    (await rest.data('GET', `/api/nodes?q=natural&sort=${sort}`)).items.map(({ name }: JsonData) => name);
  const wanted = [
    'natural 1',
    'natural 02',
    'natural 2',
    'natural 2a',
    'natural 10',
    'natural 010b',
    'natural a',
    'Natural b',
  ];
  for (const name of wanted.toReversed()) await rest.data('POST', '/api/nodes', { body: { name } });
  expect(await sorted('name')).toEqual(wanted);
  expect(await sorted('-name')).toEqual(wanted.toReversed());
});

test('a refusal names what uses a resource in the natural order of names', async () => {
  const { id } = await rest.data('POST', '/api/nodes', { body: { name: 'used' } });
  for (const number of [10, 9, 100]) {
    const hops = [{ node_id: id, listen_port: number }];
    const body = { name: `user ${number}`, host: 'natural.example', hops, backend: '192.0.2.1:80' };
    await rest.data('POST', '/api/routes', { body });
  }
  const { error } = (await rest.call('DELETE', `/api/nodes/${id}`)).json();
  expect(error).toMatch(/route "user 9" .*, route "user 10" .*, route "user 100"/);
});

test('the sets of an export are in the natural order of names', async () => {
  for (const number of [10, 9]) {
    const document = JSON.stringify({ svc: 1, set: `set ${number}`, nodes: { [`of set ${number}`]: {} } });
    await rest.data('POST', '/api/fleet/apply', { body: { document } });
  }
  const { documents } = await rest.data('GET', '/api/fleet/export');
  expect(documents.map(({ set }: JsonData) => set)).toEqual(['set 9', 'set 10', null]);
});

test('q finds a node by its address, its labels, and what its agent reports', async () => {
  const { id } = await rest.data('POST', '/api/nodes', {
    body: { name: 'searched', address: 'Gate.Example', labels: { rack: 'B7-north' } },
  });
  await rest.connect(id);
  const { agent_version } = await rest.data('GET', `/api/nodes/${id}`);
  for (const q of ['gate.ex', 'b7-NORTH', 'rack', agent_version]) {
    const { items } = await rest.data('GET', `/api/nodes?q=${encodeURIComponent(q)}&page_size=500`);
    expect([q, items.map((node: JsonData) => node.id)]).toEqual([q, expect.arrayContaining([id])]);
  }
  expect((await rest.data('GET', '/api/nodes?q=b7-south')).total).toBe(0);
});

test('nodes sort by status: offline, pending, online, and by name within one', async () => {
  const made: { [name: string]: string } = {};
  for (const name of ['st 1', 'st 2', 'st 3', 'st 10'])
    made[name] = (await rest.data('POST', '/api/nodes', { body: { name } })).id;
  await (await rest.connect(made['st 3']!)).disconnect();
  await rest.connect(made['st 1']!);
  const order = async (sort: string): Promise<string[]> =>
    (await rest.data('GET', `/api/nodes?q=st%20&sort=${sort}`)).items.map(({ name }: JsonData) => name);
  expect(await order('status')).toEqual(['st 3', 'st 2', 'st 10', 'st 1']);
  expect(await order('-status')).toEqual(['st 1', 'st 2', 'st 10', 'st 3']);
});
