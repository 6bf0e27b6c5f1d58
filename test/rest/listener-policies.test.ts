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
