/** Listener policies over REST, field by field (`docs/contract/rest.md#port-management`). */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startRest, type JsonData, type RestFixture } from '../support/rest-fixture.js';

let rest: RestFixture;
let node: JsonData;
beforeAll(async () => {
  rest = await startRest();
  node = await rest.data('POST', '/api/nodes', { body: { name: 'a' } });
});
afterAll(() => rest.close());

const url = '/api/nodes/ports/policies';
let port = 1000;
/** A body for a listener that no test has used. */
const policy = (more: object = {}): Record<string, unknown> => {
  port += 1;
  return {
    nodeId: node.id,
    transport: 'tcp',
    listenAddr: '0.0.0.0',
    listenPort: port,
    priorityOrder: ['raw'],
    ...more,
  };
};
const save = (body: object, headers: Record<string, string> = {}) => rest.call('PUT', url, { body, headers });
const remove = (key: Record<string, unknown>, headers: Record<string, string> = {}) => {
  const named = Object.fromEntries(
    Object.entries(key).flatMap(([name, value]) => (value === undefined ? [] : [[name, String(value)]])),
  ) as Record<string, string>;
  return rest.call('DELETE', `${url}?${new URLSearchParams(named)}`, { headers });
};
const keyOf = ({ priorityOrder: _, version: __, ...key }: Record<string, unknown>) => key;

describe('a save', () => {
  test('is always a 200 with the whole policy, its version in the body and as ETag', async () => {
    const body = policy({ listenAddr: '2001:DB8:0::1', priorityOrder: ['noise', 'raw', 'noise'] });
    const first = await save(body);
    const saved = { ...body, listenAddr: '2001:db8::1', priorityOrder: ['noise', 'raw', 'reality', 'tls'], version: 1 };
    expect([first.statusCode, first.json().data, first.headers.etag]).toEqual([200, saved, '"1"']);
    const second = await save({ ...body, priorityOrder: [] });
    const changed = { ...saved, priorityOrder: ['reality', 'tls', 'noise', 'raw'], version: 2 };
    expect([second.statusCode, second.json().data, second.headers.etag]).toEqual([200, changed, '"2"']);
    const before = await rest.position();
    expect((await save({ ...body, priorityOrder: ['reality', 'tls'] })).json().data).toEqual(changed);
    expect(await rest.position()).toBe(before);
  });

  test.each<[string, object, RegExp]>([
    [
      'a node that does not exist',
      { nodeId: '00000000-0000-4000-8000-000000000000' },
      /^nodeId: expected the id of a node/,
    ],
    ['quic, which is udp', { transport: 'quic' }, /^transport: expected "tcp" or "udp"/],
    ['a host name', { listenAddr: 'localhost' }, /^listenAddr: /],
    [
      'an unknown label',
      { priorityOrder: ['raw', 'sni'] },
      /^priorityOrder\[1\]: expected "reality" or "tls" or "noise" or "raw"/,
    ],
  ])('refuses %s', async (_, more, sentence) => {
    const answer = await save(policy(more));
    expect(answer.statusCode).toBe(400);
    expect(answer.json().error.replace('invalid_request: ', '')).toMatch(sentence);
  });

  test('is for operators and admins', async () => {
    const call = (role: 'viewer' | 'operator', method: string) => rest.call(method, url, { role, body: policy() });
    expect((await call('viewer', 'PUT')).statusCode).toBe(403);
    expect((await call('viewer', 'DELETE')).statusCode).toBe(403);
    expect((await call('operator', 'PUT')).statusCode).toBe(200);
    const allowed = await rest.call('POST', url, { body: policy() });
    expect([allowed.statusCode, allowed.headers.allow]).toEqual([405, 'PUT, DELETE']);
  });

  test('honours If-Match', async () => {
    const body = policy();
    expect((await save(body, { 'if-match': '*' })).statusCode).toBe(412);
    expect((await save(body, { 'if-match': '"1"' })).statusCode).toBe(412);
    expect((await save(body, { 'if-match': '"0"' })).statusCode).toBe(200);
    expect((await save({ ...body, priorityOrder: [] }, { 'if-match': '*' })).json().data.version).toBe(2);
    expect((await save({ ...body, priorityOrder: ['tls'] }, { 'if-match': '"1"' })).statusCode).toBe(412);
    // Before what the body refers to.
    const unknown = policy({ nodeId: '00000000-0000-4000-8000-000000000000' });
    expect((await save(unknown, { 'if-match': '*' })).statusCode).toBe(412);
  });

  test('gives the node a new generation, and its snapshot has the policy', async () => {
    const { id, generation } = await rest.data('POST', '/api/nodes', { body: { name: 'of a snapshot' } });
    await save(policy({ nodeId: id, listenAddr: '::', listenPort: 443, priorityOrder: ['tls'] }));
    const config = await rest.data('GET', `/api/nodes/${id}/config`);
    expect(config.generation).toBeGreaterThan(generation);
    expect(config.snapshot.gateway.listener_policies).toEqual([
      { transport: 'tcp', listen_addr: '::', listen_port: 443, priority_order: ['tls', 'reality', 'noise', 'raw'] },
    ]);
    await remove({ nodeId: id, transport: 'tcp', listenAddr: '0:0::0', listenPort: 443 });
    const after = await rest.data('GET', `/api/nodes/${id}/config`);
    expect(after.generation).toBeGreaterThan(config.generation);
    expect(after.snapshot.gateway.listener_policies ?? []).toEqual([]);
  });
});

describe('a delete', () => {
  test('names the listener in its query and answers an empty object, then 404', async () => {
    const body = policy();
    const { version } = (await save(body)).json().data;
    expect((await remove(keyOf(body), { 'if-match': `"${version + 1}"` })).statusCode).toBe(412);
    const answer = await remove(keyOf(body), { 'if-match': `"${version}"` });
    expect([answer.statusCode, answer.json().data]).toEqual([200, {}]);
    const again = await remove(keyOf(body));
    expect([again.statusCode, again.json().error]).toEqual([404, expect.stringMatching(/^not_found: /)]);
  });

  test.each(['nodeId', 'transport', 'listenAddr', 'listenPort'])('requires %s, once and valid', async (field) => {
    const body = policy();
    await save(body);
    const error = expect.stringMatching(new RegExp(`^invalid_request: .*${field}`));
    for (const value of [undefined, '', 'x']) {
      const answer = await remove({ ...keyOf(body), [field]: value });
      expect([value, answer.statusCode, answer.json().error]).toEqual([value, 400, error]);
    }
    const more = await remove({ ...keyOf(body), priorityOrder: 'raw' });
    expect([more.statusCode, more.json().error]).toEqual([400, expect.stringMatching(/priorityOrder/)]);
    expect((await remove(keyOf(body))).statusCode).toBe(200);
  });
});

describe('a listener whose policy was deleted and saved again', () => {
  const versionOf = async (body: object): Promise<number> => (await save(body)).json().data.version;

  test('has a higher version than before, so that no entity tag of the former policy fits', async () => {
    const body = policy();
    const former = await versionOf(body);
    await remove(keyOf(body));
    expect(await versionOf({ ...body, priorityOrder: ['tls'] })).toBeGreaterThan(former);
    expect((await save(body, { 'if-match': `"${former}"` })).statusCode).toBe(412);
    expect((await remove(keyOf(body), { 'if-match': `"${former}"` })).statusCode).toBe(412);
  });

  test('keeps the new policy when the first save is reverted as it was looked at before', async () => {
    const body = policy();
    await save(body);
    const [entry] = (await rest.data('GET', '/api/audit?resource_type=listener_policy')).items;
    await rest.data('POST', `/api/audit/${entry.id}/revert?dry_run=true`);
    await remove(keyOf(body));
    await save({ ...body, priorityOrder: ['tls'] });
    expect((await rest.call('POST', `/api/audit/${entry.id}/revert`)).statusCode).toBe(409);
  });

  test('has one also after its node was deleted and came back', async () => {
    const { id } = await rest.data('POST', '/api/nodes', { body: { name: 'comes back' } });
    const body = policy({ nodeId: id });
    for (const order of ['tls', 'noise', 'raw']) await save({ ...body, priorityOrder: [order] });
    const former = await versionOf({ ...body, priorityOrder: ['tls'] });
    await rest.data('DELETE', `/api/nodes/${id}`);
    const [entry] = (await rest.data('GET', '/api/audit?action=node.delete')).items;
    await rest.data('POST', `/api/audit/${entry.id}/revert`);
    expect((await save(body, { 'if-match': `"${former}"` })).statusCode).toBe(412);
    expect(await versionOf(body)).toBeGreaterThan(former);
  });
});

test('the audit shows a policy under the name of its listener, its first save as a create', async () => {
  const body = policy();
  const id = `${node.id}/tcp/0.0.0.0/${String(body['listenPort'])}`;
  await save(body);
  await save({ ...body, priorityOrder: ['tls'] });
  await remove(keyOf(body));
  const { items } = await rest.data('GET', `/api/audit?resource_id=${encodeURIComponent(id)}`);
  const resource = { type: 'listener_policy', id, name: id };
  expect(items).toMatchObject([
    { action: 'listener_policy.delete', resource },
    { action: 'listener_policy.update', resource, changes: [{ path: 'priority_order' }] },
    { action: 'listener_policy.create', resource },
  ]);
  const filtered = await rest.data('GET', '/api/audit?resource_type=listener_policy&action=listener_policy.delete');
  expect(filtered.items[0]).toMatchObject({ resource, revertible: expect.any(Boolean) });
});
