/** Labels of several nodes, and commands to them: one command, one entry (`docs/contract/rest.md#nodes`). */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { limits } from '../../src/kernel/limits.js';
import { startRest, type Call, type JsonData, type RestFixture } from '../support/rest-fixture.js';

let rest: RestFixture;
beforeAll(async () => {
  rest = await startRest();
});
afterAll(() => rest.close());

let made = 0;
const aNode = async (labels: object = {}): Promise<string> =>
  (await rest.data('POST', '/api/nodes', { body: { name: `n-${(made += 1)}`, labels, issue_psk: false } })).id;
const label = (body: object, call: Call = {}): Promise<JsonData> =>
  rest.data('POST', '/api/nodes/labels', { role: 'operator', ...call, body });
const labelsOf = async (id: string): Promise<JsonData> => (await rest.data('GET', `/api/nodes/${id}`)).labels;
const audit = async (query: string): Promise<JsonData> => (await rest.data('GET', `/api/audit?${query}`)).items;
const revert = (id: string) => rest.call('POST', `/api/audit/${id}/revert`, { role: 'operator' });

/** Refused, and nothing is written. */
async function refused(path: string, body: object, status: number, sentence: string): Promise<void> {
  const before = await rest.position();
  const answer = await rest.call('POST', path, { role: 'operator', body });
  expect([answer.statusCode, answer.json().error]).toEqual([status, expect.stringContaining(sentence)]);
  expect(await rest.position()).toBe(before);
}

describe('labels of several nodes', () => {
  test('are one entry, found by each of them, and are taken back as a whole', async () => {
    const [a, b, same] = [
      await aNode({ region: 'us', rack: '1', kept: 'x' }),
      await aNode(),
      await aNode({ region: 'eu' }),
    ];
    const body = { node_ids: [b, a, same], set: { region: 'eu' }, remove: ['rack', 'absent'] };
    const revision = (await rest.log()).length;
    const { entry, nodes } = await label(body, { headers: { 'idempotency-key': 'once' } });
    expect(new Set((await rest.log()).slice(revision).map(({ metadata }) => metadata.command.id))).toEqual(
      new Set([entry.id]),
    );
    expect(nodes.map(({ id, labels }: JsonData) => [id, labels])).toEqual([
      [b, { region: 'eu' }],
      [a, { kept: 'x', region: 'eu' }],
      [same, { region: 'eu' }],
    ]);
    const of = (id: string, name: string) => ({ type: 'node', id, name });
    const changes = [
      { path: 'labels.region', before: null, after: 'eu', resource: of(b, nodes[0].name) },
      { path: 'labels.rack', before: '1', after: null, resource: of(a, nodes[1].name) },
      { path: 'labels.region', before: 'us', after: 'eu', resource: of(a, nodes[1].name) },
    ];
    expect(entry).toMatchObject({
      action: 'node.label',
      resource: { type: 'node', id: null, name: '2 nodes' },
      changes_total: 3,
      revertible: true,
      not_revertible_because: null,
    });
    expect(entry.changes).toEqual(changes);
    const of3 = await Promise.all([a, b, same].map((id) => audit(`resource_id=${id}&action=node.label`)));
    expect(of3).toEqual([[entry], [entry], []]);
    const byName = nodes.map(({ name }: JsonData) => audit(`q=${name}&action=node.label`));
    expect(await Promise.all(byName)).toEqual([[entry], [entry], []]);
    expect((await audit('resource_type=node&page_size=1'))[0]).toEqual(entry);
    expect((await rest.data('GET', `/api/audit/${entry.id}/changes`)).items).toEqual(changes);
    const fed = await rest.data('GET', `/api/events?after=start&node_id=${a}&resource_id=${b}&types=command`);
    expect(fed.items.at(-1).data).toMatchObject({ id: entry.id, changes });

    // A repeat writes nothing.
    const before = await rest.position();
    expect(await label(body, { headers: { 'idempotency-key': 'once' } })).toEqual({ entry, nodes });
    expect(await label(body)).toMatchObject({ entry: null, nodes: [{ id: b }, { id: a }, { id: same }] });
    expect(await rest.position()).toBe(before);

    const tried = await rest.data('POST', `/api/audit/${entry.id}/revert?dry_run=true`);
    expect(tried.changes.map(({ resource, path, after }: JsonData) => [resource.id, path, after])).toEqual([
      [a, 'labels.rack', '1'],
      [a, 'labels.region', 'us'],
      [b, 'labels.region', null],
    ]);
    const done = (await revert(entry.id)).json().data;
    expect(done).toMatchObject({ action: 'node.revert', resource: { id: null, name: '2 nodes' }, reverts: entry.id });
    expect(await Promise.all([a, b, same].map(labelsOf))).toEqual([
      { kept: 'x', rack: '1', region: 'us' },
      {},
      { region: 'eu' },
    ]);
    // A revert is an entry, which is taken back like the first.
    expect((await revert(done.id)).statusCode).toBe(200);
    expect(await labelsOf(a)).toEqual({ kept: 'x', region: 'eu' });
  });

  test('are not taken back over later work, which is named for each node', async () => {
    const [a, b, gone] = [await aNode(), await aNode(), await aNode()];
    const { entry } = await label({ node_ids: [a, b, gone], set: { tier: 'one' } });
    const later = (await label({ node_ids: [a, b], set: { tier: 'two' } })).entry;
    await rest.data('DELETE', `/api/nodes/${gone}`);
    const [deleted] = await audit(`resource_id=${gone}&page_size=1`);
    const before = await rest.position();
    const answer = await revert(entry.id);
    expect([answer.statusCode, await rest.position()]).toEqual([409, before]);
    for (const part of ['labels.tier: is now "two"', later.id, `the node ${gone} is gone`, deleted.id]) {
      expect(answer.json().error).toContain(part);
    }
    // One of them is work on a node that was created before it.
    const [created] = await audit(`resource_id=${a}&action=node.create`);
    expect((await revert(created.id)).json().error).toContain(`node.label by the entry ${later.id}`);
    expect((await revert(later.id)).statusCode).toBe(200);
    expect(await Promise.all([a, b].map(labelsOf))).toEqual([{ tier: 'one' }, { tier: 'one' }]);
  });

  test('of one node are an entry about "1 node"', async () => {
    const { entry } = await label({ node_ids: [await aNode()], set: { region: 'eu' } });
    expect(entry.resource).toEqual({ type: 'node', id: null, name: '1 node' });
  });

  test('are refused by field, and written for none', async () => {
    const many = Object.fromEntries(Array.from({ length: limits.rest.labels }, (_, n) => [`key-${n}`, 'x']));
    const [a, full] = [await aNode(), await aNode(many)];
    const path = '/api/nodes/labels';
    const unknown = rest.deps.ids.next();
    for (const [body, sentence] of [
      [{ node_ids: [a] }, 'set: expected labels, unless "remove" has keys'],
      [{ node_ids: [], set: { x: 'y' } }, 'node_ids: expected a list of 1 to 500'],
      [{ node_ids: Array.from({ length: 501 }, () => rest.deps.ids.next()), set: {} }, 'node_ids: expected'],
      [{ node_ids: [a, a], set: { x: 'y' } }, 'node_ids[1]: expected each node once'],
      [
        { node_ids: [a, unknown], set: { x: 'y' } },
        `node_ids[1]: expected the id of a node, there is no node ${unknown}`,
      ],
      [{ node_ids: [a], set: { x: 'y' }, remove: ['z', 'x'] }, 'remove[1]: expected a key that "set" lacks'],
      [{ node_ids: [a, full], set: { more: 'y' } }, 'set: expected at most 32 labels of a node'],
      [{ node_ids: [a], set: { 'a:b': 'y' } }, 'set'],
      [{ node_ids: [a], remove: [''] }, 'remove[0]'],
    ] as const) {
      await refused(path, body, 400, sentence);
    }
    // Room is made by what is removed.
    expect((await label({ node_ids: [full], set: { more: 'y' }, remove: ['key-0'] })).entry.changes_total).toBe(2);
  });

  test('of 500 nodes are one command; labels that are too large for one are a 413', async () => {
    const document = `svc: 1\nset: many\nnodes: {${Array.from({ length: 500 }, (_, n) => `many-${n}: {}`).join(', ')}}`;
    await rest.data('POST', '/api/fleet/apply', { body: { document } });
    const { items } = await rest.data('GET', '/api/nodes?page_size=500&q=many-');
    const node_ids = items.map(({ id }: JsonData) => id);
    expect(node_ids).toHaveLength(500);
    await refused('/api/nodes/labels', { node_ids, set: { text: 'x'.repeat(1024) } }, 413, 'name fewer nodes');
    const call = { headers: { 'x-request-id': 'r'.repeat(128), 'idempotency-key': 'k' } };
    const { entry, nodes } = await label({ node_ids, set: { region: 'eu', tier: 'one' } }, call);
    expect([entry.resource.name, entry.changes_total, entry.changes.length, nodes.length]).toEqual([
      '500 nodes',
      1000,
      20,
      500,
    ]);
    const back = await rest.data('POST', `/api/audit/${entry.id}/revert`, call);
    expect(back.changes_total).toBe(1000);
    const sent = await rest.data('POST', '/api/nodes/commands', {
      body: { node_ids, command: 'RELOAD_CONFIG' },
      ...call,
    });
    expect(sent.items).toHaveLength(500);
  });
});

describe('a command to several nodes', () => {
  const send = (node_ids: readonly string[], call: Call = {}): Promise<JsonData> =>
    rest.data('POST', '/api/nodes/commands', { ...call, body: { node_ids, command: 'RUN_DIAGNOSTICS' } });

  test('is one entry, and each agent gets its own', async () => {
    const ids = [await aNode(), await aNode()];
    const key = { headers: { 'idempotency-key': 'sent-once' } };
    const { entry, items } = await send(ids, key);
    expect(entry).toMatchObject({
      action: 'node.command',
      resource: { type: 'node', id: null, name: '2 nodes' },
      changes: ids.map((id) => ({ path: 'command', before: null, after: 'RUN_DIAGNOSTICS', resource: { id } })),
      revertible: false,
      not_revertible_because: 'a command to an agent cannot be called back',
    });
    expect((await revert(entry.id)).statusCode).toBe(409);
    expect(await send(ids, key)).toEqual({ entry, items });
    for (const [index, id] of ids.entries()) {
      expect(await audit(`resource_id=${id}&action=node.command`)).toEqual([entry]);
      expect(await rest.claims.claim(id, rest.deps.fleet.node(id)!.commands)).toEqual(['RUN_DIAGNOSTICS']);
      const [{ state, ...listed }] = (await rest.data('GET', `/api/nodes/${id}/commands`)).items;
      expect([state, listed]).toEqual(['delivered', expect.objectContaining({ id: items[index].id })]);
      expect(items[index]).toEqual({
        id: listed.id,
        command: 'RUN_DIAGNOSTICS',
        state: 'queued',
        expires_at: listed.expires_at,
      });
    }
    const one = await send([ids[0]!]);
    expect([one.entry.resource.name, one.items[0].id]).toEqual(['1 node', one.entry.id]);
    expect((await rest.data('GET', `/api/nodes/${ids[0]}/commands`)).items[0].id).toBe(one.items[0].id);
  });

  test('is refused as a whole', async () => {
    const [a, unknown] = [await aNode(), rest.deps.ids.next()];
    const path = '/api/nodes/commands';
    await refused(path, { node_ids: [a, unknown], command: 'RELOAD_CONFIG' }, 400, 'node_ids[1]');
    await refused(path, { node_ids: [a, a], command: 'RELOAD_CONFIG' }, 400, 'node_ids[1]: expected each node once');
    await refused(path, { node_ids: [a], command: 'EXPLODE' }, 400, 'command: expected');
    await refused(path, { node_ids: [a] }, 400, 'command');
    expect((await rest.data('GET', `/api/nodes/${a}/commands`)).items).toEqual([]);
  });
});
