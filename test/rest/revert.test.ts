/** `docs/contract/domain.md#audit-and-revert` and `docs/contract/rest.md#audit`: reverts over REST. */
import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startRest, type RestFixture } from '../support/rest-fixture.js';

let rest: RestFixture;
beforeAll(async () => {
  rest = await startRest();
});
afterAll(() => rest.close());

let made = 0;
const fresh = (what: string): string => `${what}-${(made += 1)}`;
const target = { endpoint: 'target.example:80' };

type Fields = { readonly [field: string]: unknown };
// oxlint-disable-next-line typescript/no-explicit-any -- answers are checked by the tests themselves
type Answered = any;

const get = (url: string): Promise<Answered> => rest.data('GET', url);
const post = (url: string, body?: Fields): Promise<Answered> =>
  rest.data('POST', url, body === undefined ? {} : { body });
const put = (url: string, body: Fields): Promise<Answered> => rest.data('PUT', url, { body });
const remove = (url: string): Promise<Answered> => rest.data('DELETE', url);

const aNode = (fields: Fields = {}): Promise<Answered> =>
  post('/api/nodes', { name: fresh('node'), address: 'n.example', issue_psk: false, ...fields });
const anUpstream = (fields: Fields = {}): Promise<Answered> =>
  post('/api/l4-upstreams', { name: fresh('upstream'), endpoint: 'u.example:443', ...fields });
const hop = (nodeId: string, port = 443): Fields => ({
  node_id: nodeId,
  listen_port: port,
  outer: 'tcp',
  security: 'raw',
});
const aChain = (hops: readonly Fields[], fields: Fields = {}): Promise<Answered> =>
  post('/api/l4-chains', { name: fresh('chain'), payload: 'tcp', hops, target, ...fields });

/** The newest entry about a resource. */
async function newest(resourceId: string): Promise<Answered> {
  return (await get(`/api/audit?resource_id=${encodeURIComponent(resourceId)}&page_size=1`)).items[0];
}
const revert = (entryId: string, query = '', role: 'admin' | 'operator' | 'viewer' = 'operator') =>
  rest.call('POST', `/api/audit/${entryId}/revert${query}`, { role });

async function reverted(entryId: string): Promise<Answered> {
  const answer = await revert(entryId);
  expect([answer.statusCode, answer.json().error]).toEqual([200, null]);
  return answer.json().data;
}
/** The sentence of a 409, which wrote nothing. */
async function refused(entryId: string): Promise<string> {
  const before = await rest.position();
  const answer = await revert(entryId);
  expect([answer.statusCode, answer.json()]).toMatchObject([409, { success: false, data: null }]);
  expect(await rest.position()).toBe(before);
  return answer.json().error;
}

describe('Update', () => {
  test('each field gets its earlier value, and fields that others edited since stay', async () => {
    const node = await aNode({ labels: { env: 'prod', rack: '1' } });
    await put(`/api/nodes/${node.id}`, { description: 'edited', labels: { env: 'test', zone: 'a' } });
    const edit = await newest(node.id);
    await put(`/api/nodes/${node.id}`, {
      name: `${node.name}-renamed`,
      labels: { env: 'test', zone: 'a', added: '1' },
    });
    const entry = await reverted(edit.id);
    expect(await get(`/api/nodes/${node.id}`)).toMatchObject({
      name: `${node.name}-renamed`,
      description: null,
      labels: { env: 'prod', rack: '1', added: '1' },
      version: 4,
    });
    expect(entry).toMatchObject({
      action: 'node.revert',
      resource: { type: 'node', id: node.id, name: `${node.name}-renamed` },
      actor: { type: 'user', name: 'operator' },
      reverts: edit.id,
      reverted_by: null,
      revertible: true,
      not_revertible_because: null,
    });
    expect(entry).toEqual(await newest(node.id));
    expect((await get(`/api/audit?resource_id=${node.id}`)).items[2]).toMatchObject({
      id: edit.id,
      reverted_by: entry.id,
      revertible: false,
    });
  });
});

describe('Delete', () => {
  test('a credential comes back with its key', async () => {
    const key = randomBytes(32);
    const private_key = key.toString('base64url');
    const credential = await post('/api/credentials', { name: fresh('keys'), key_type: 'x25519', private_key });
    await remove(`/api/credentials/${credential.id}`);
    await reverted((await newest(credential.id)).id);
    const restored = await get(`/api/credentials/${credential.id}`);
    expect(restored).toMatchObject({
      public_key: credential.public_key,
      created_at: credential.created_at,
      version: 3,
    });
    const node = await aNode();
    const noise = { ...hop(node.id, 1400), outer: 'udp', security: 'noise', credential_id: credential.id };
    const chain = await aChain([noise], { payload: 'udp' });
    const session = await rest.connect(node.id);
    await post(`/api/l4-chains/${chain.id}/deploy`);
    expect(Buffer.from((await session.receive()).payload).includes(key)).toBe(true);
    await session.disconnect();
  });
});

describe('Deploy', () => {
  test('the undo of a deploy goes back to the definition before; that of a first one makes a draft', async () => {
    const node = await aNode();
    const chain = await aChain([hop(node.id, 1700)]);
    await post(`/api/l4-chains/${chain.id}/deploy`);
    const first = await newest(chain.id);
    await put(`/api/l4-chains/${chain.id}`, { hops: [hop(node.id, 1701)] });
    await post(`/api/l4-chains/${chain.id}/deploy`);
    const second = await newest(chain.id);
    expect(await refused(first.id)).toContain(`changed since by the entry ${second.id}`);
    await reverted(second.id);
    const ports = async (): Promise<readonly number[]> =>
      (await get(`/api/nodes/${node.id}/config`)).snapshot.gateway.tcp_proxy_rules.map(
        (rule: Answered) => rule.listen_port,
      );
    expect([await ports(), (await get(`/api/l4-chains/${chain.id}`)).status]).toEqual([[1700], 'modified']);
    // A roll-back is a deployment too: its nodes converge on a generation of it.
    const { items } = await get(`/api/l4-chains/${chain.id}/deployments`);
    expect(items).toHaveLength(3);
    expect(items[0].nodes[0].generation).toBe((await get(`/api/nodes/${node.id}`)).generation);
    await reverted(first.id);
    expect([await ports(), await get(`/api/l4-chains/${chain.id}`)]).toMatchObject([
      [],
      { status: 'draft', deployed_version: null, deployed_at: null },
    ]);
  });
});

describe('A revert is an entry', () => {
  test('it can be reverted, which makes the first entry revertible again; one that stands is a 409 that names it', async () => {
    const upstream = await anUpstream();
    const creation = await newest(upstream.id);
    const first = await reverted(creation.id);
    expect(await refused(creation.id)).toContain(`it was reverted by the entry ${first.id}`.slice(3));
    const second = await reverted(first.id);
    expect(second.reverts).toBe(first.id);
    expect(await get(`/api/l4-upstreams/${upstream.id}`)).toMatchObject({ name: upstream.name, version: 3 });
    const of = async (id: string): Promise<Answered> =>
      (await get(`/api/audit?resource_id=${upstream.id}`)).items.find((one: Answered) => one.id === id);
    expect(await of(creation.id)).toMatchObject({ revertible: true, reverted_by: null });
    expect(await of(first.id)).toMatchObject({ revertible: false, reverted_by: second.id });
    const third = await reverted(creation.id);
    expect(await of(creation.id)).toMatchObject({ reverted_by: third.id });
    expect((await rest.call('GET', `/api/l4-upstreams/${upstream.id}`)).statusCode).toBe(404);
  });
});

describe('Not revertible, saying why', () => {
  test('user creation, and the compiler version', async () => {
    for (const type of ['user', 'service']) {
      const { items } = await get(`/api/audit?resource_type=${type}`);
      const answer = await revert(items.at(-1).id, '', 'admin');
      expect([answer.statusCode, answer.json().error]).toEqual([
        409,
        `conflict: the entry cannot be reverted: ${items.at(-1).not_revertible_because}`,
      ]);
    }
  });
});

describe('dry_run', () => {
  test('answers what would change, and writes nothing', async () => {
    const node = await aNode();
    await put(`/api/nodes/${node.id}`, { name: `${node.name}-b`, labels: { a: '1' } });
    const { id } = await newest(node.id);
    const before = await rest.position();
    const answer = await revert(id, '?dry_run=true');
    const resource = { type: 'node', id: node.id, name: node.name };
    expect(answer.json().data).toEqual({
      entry_id: id,
      changes: [
        { resource, path: 'name', before: `${node.name}-b`, after: node.name },
        { resource, path: 'labels.a', before: '1', after: null },
      ],
      waves: [],
      warnings: [],
    });
    expect(await rest.position()).toBe(before);
    expect((await get(`/api/nodes/${node.id}`)).name).toBe(`${node.name}-b`);
  });
});

describe('Who may revert', () => {
  test('the edit of a profile is reverted by an admin, and hidden from others; its values are never shown', async () => {
    await rest.data('PUT', '/api/auth/me', { role: 'operator', body: { display_name: 'First', email: 'a@b.example' } });
    await rest.data('PUT', '/api/auth/me', { role: 'operator', body: { display_name: 'Second' } });
    const { items } = await get('/api/audit?action=user.update');
    const [second, first] = items;
    expect((await revert(second.id, '', 'operator')).statusCode).toBe(404);
    const conflict = await revert(first.id, '', 'admin');
    expect([conflict.statusCode, conflict.json().error]).toEqual([
      409,
      `conflict: display_name: changed since by the entry ${second.id}`,
    ]);
    const preview = await revert(second.id, '?dry_run=true', 'admin');
    expect(preview.json().data.changes).toEqual([
      { resource: expect.objectContaining({ type: 'user' }), path: 'display_name', before: '***', after: '***' },
    ]);
    const entry = (await revert(second.id, '', 'admin')).json().data;
    expect(entry).toMatchObject({ action: 'user.revert', reverts: second.id, resource: { name: 'operator' } });
    const me = (): Promise<Answered> => rest.data('GET', '/api/auth/me', { role: 'operator' });
    expect(await me()).toMatchObject({ display_name: 'First', email: 'a@b.example' });
    expect((await revert(first.id, '', 'admin')).statusCode).toBe(200);
    expect(await me()).toMatchObject({ display_name: null, email: null });
    expect((await revert(first.id, '', 'admin')).json().error).toContain('was reverted by the entry');
  });
});
