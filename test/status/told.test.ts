/**
 * What changes by itself, as a caller of REST sees it: `status` items of the feed, and incidents.
 * `docs/contract/notices.md#status-changes-are-facts`.
 */
import { afterEach, beforeEach, expect, test } from 'vitest';
import { systemClock, type Clock } from '../../src/kernel/clock.js';
import { limits } from '../../src/kernel/limits.js';
import { eventually } from '../support/eventually.js';
import { runningListener } from '../support/reported-tables.js';
import { startRest, type JsonData, type RestFixture } from '../support/rest-fixture.js';

/** The real time, and as much more as a test lets pass. */
let skipped = 0;
/** By how much the wall clock is ahead. */
let ahead = 0;
const clock: Clock = {
  now: () => systemClock.now() + skipped + ahead,
  monotonic: () => systemClock.monotonic() + skipped,
};
/** Longer than any change must stand. */
const standing = 4_000;
/** Longer than an agent has to come back. */
const comingBack = 8_000;
/** Also longer than two facts of a resource are apart; a few times as much would look like a wrong clock. */
const betweenFacts = 11_000;
const settings = { heartbeat_interval_secs: 2, offline_after_secs: 6 };

let rest: RestFixture;
beforeEach(async () => {
  [skipped, ahead] = [0, 0];
  rest = await startRest({}, clock);
  await rest.data('PUT', '/api/settings/connectivity', { body: settings });
});
afterEach(() => rest.close());

const told = async (): Promise<JsonData[]> =>
  (await rest.data('GET', '/api/events?after=start&types=status')).items.map(({ data }: JsonData) => data);
const incidents = async (query = ''): Promise<JsonData> =>
  rest.data('GET', `/api/incidents${query}`, { role: 'viewer' });

/**
 * Lets time pass until so many facts are told.
 * @param ms how much time, in steps that are shorter than a lease
 * @param heartbeat of agents that stay online meanwhile
 */
async function untilTold(
  count: number,
  ms = standing,
  { stepMs = 300, heartbeat = async (): Promise<void> => undefined } = {},
): Promise<JsonData[]> {
  const end = skipped + ms;
  await eventually(async () => {
    skipped = Math.min(end, skipped + stepMs);
    await heartbeat();
    return (await told()).length;
  }).toBe(count);
  return told();
}

test('a node that comes, goes and comes back is told three times, as one incident', async () => {
  const { id } = await rest.data('POST', '/api/nodes', { body: { name: 'edge-1' } });
  const resource = { type: 'node', id, name: 'edge-1' };
  const agent = await rest.connect(id);
  const [online] = await untilTold(1);
  expect(online).toMatchObject({ resource, was: 'pending', status: 'online', reason: null, incident: null });

  await agent.disconnect();
  const [, offline] = await untilTold(2, betweenFacts);
  expect(offline).toMatchObject({ resource, was: 'online', status: 'offline', incident: { status: 'offline' } });
  await eventually(async () => (await incidents('?open=true')).items).toMatchObject([
    { id: offline.incident.id, resource, status: 'offline', began_at: offline.since, ended_at: null },
  ]);

  await rest.connect(id);
  const [, , back] = await untilTold(3, betweenFacts);
  expect(back).toMatchObject({ resource, was: 'offline', status: 'online', incident: offline.incident });
  await eventually(async () => (await incidents()).items[0]?.ended_at).toBe(back.since);
  const { items, total } = await incidents();
  expect(total).toBe(1);
  const [ended] = items;
  expect(ended).toMatchObject({ id: offline.incident.id, ended_at: back.since });
  expect(ended.duration_secs).toBeCloseTo((Date.parse(back.since) - Date.parse(offline.since)) / 1000, 3);
  expect((await incidents('?open=true')).items).toEqual([]);
  expect((await incidents('?resource_type=l4_chain')).total).toBe(0);
  expect((await incidents(`?resource_id=${id}&from=${back.since}`)).total).toBe(1);
  expect((await incidents(`?to=${new Date(Date.parse(offline.since) - 1).toISOString()}`)).total).toBe(0);
});

test('a node that is back is online since it came back, also before the log has its new session', async () => {
  const { id } = await rest.data('POST', '/api/nodes', { body: { name: 'edge-1' } });
  const agent = await rest.connect(id);
  await untilTold(1);
  await agent.disconnect();
  const [, offline] = await untilTold(2, betweenFacts);

  const presence = { session_id: 'later', instance_id: 'one', pushed_generation: 0, pushed_at: null };
  await rest.reports.sessionOpened(id, presence, 60_000);
  const [, , back] = await untilTold(3, betweenFacts);
  expect(Date.parse(back.since)).toBeGreaterThan(Date.parse(offline.since));
});

test('what follows from the silence of an agent that comes back is not told', async () => {
  const { id } = await rest.data('POST', '/api/nodes', { body: { name: 'edge-1' } });
  const agent = await rest.connect(id);
  await untilTold(1);
  await agent.disconnect();
  skipped += 4_000;
  await rest.connect(id);
  const { id: other } = await rest.data('POST', '/api/nodes', { body: { name: 'edge-2' } });
  await rest.connect(other);
  const facts = await untilTold(2, comingBack);
  expect(facts.map(({ resource, status }: JsonData) => [resource.name, status])).toEqual([
    ['edge-1', 'online'],
    ['edge-2', 'online'],
  ]);
});

test('a machine that slept gives agents the time to come back that a start gives them', async () => {
  await rest.data('PUT', '/api/settings/connectivity', { body: { ...settings, offline_after_secs: 600 } });
  const { id } = await rest.data('POST', '/api/nodes', { body: { name: 'edge-1' } });
  const agent = await rest.connect(id);
  await untilTold(1);
  // Asleep, the monotonic clock stands still.
  ahead += 3_600_000;
  await agent.disconnect();
  const { id: other } = await rest.data('POST', '/api/nodes', { body: { name: 'edge-2' } });
  await rest.connect(other);
  const facts = await untilTold(2);
  expect(facts.map(({ resource, status }: JsonData) => [resource.name, status])).toEqual([
    ['edge-1', 'online'],
    ['edge-2', 'online'],
  ]);
});

test('a chain is told to be down when the agent that it needs does not come back', async () => {
  const { id } = await rest.data('POST', '/api/nodes', { body: { name: 'edge-1' } });
  const hops = [{ node_id: id, listen_port: 80, outer: 'tcp', security: 'raw' }];
  const chain = { name: 'front', payload: 'tcp', hops, target: { endpoint: '192.0.2.9:9' } };
  const { id: chainId } = await rest.data('POST', '/api/l4-chains', { body: chain });
  const agent = await rest.connect(id);
  await rest.data('POST', `/api/l4-chains/${chainId}/deploy`);
  await agent.apply(await agent.receive());
  await rest.report(id, { runtime_listeners: [runningListener(80)] });
  await eventually(async () => (await rest.data('GET', `/api/l4-chains/${chainId}`)).health.state).toBe('ok');
  await untilTold(1);
  await agent.disconnect();
  // Slowly, so that the chain is first looked at while the agent may still come back.
  const [, ...facts] = await untilTold(3, betweenFacts, { stepMs: 50 });
  expect(facts.map(({ resource, status }) => `${resource.name} ${status}`).toSorted()).toEqual([
    'edge-1 offline',
    'front down',
  ]);
});

test('a command that disables a chain ends its incident and is told by its entry alone', async () => {
  const { id: node_id } = await rest.data('POST', '/api/nodes', { body: { name: 'edge-1', address: '192.0.2.1' } });
  const { id: upstream_id } = await rest.data('POST', '/api/l4-upstreams', {
    body: { name: 'web', endpoint: '192.0.2.9:80' },
  });
  const hops = [{ node_id, listen_port: 443, outer: 'tcp', security: 'raw' }];
  const { id } = await rest.data('POST', '/api/l4-chains', {
    body: { name: 'front', payload: 'tcp', hops, target: { upstream_id } },
  });
  const agent = await rest.connect(node_id);
  await untilTold(1);
  await rest.data('POST', `/api/l4-chains/${id}/deploy`);
  await agent.apply(await agent.receive());
  const listener = runningListener(443, { state: 'failed' });
  const heartbeat = (): Promise<void> => rest.report(node_id, { runtime_listeners: [listener] });
  const [, down] = await untilTold(2, standing, { heartbeat });
  expect(down).toMatchObject({
    resource: { type: 'l4_chain', id, name: 'front' },
    was: 'ok',
    status: 'down',
    reason: 'listener tcp 0.0.0.0:443 of node "edge-1" is failed',
  });

  await rest.data('PUT', `/api/l4-chains/${id}`, { body: { enabled: false } });
  const { items } = await incidents();
  expect(items).toMatchObject([{ id: down.incident.id, status: 'down' }]);
  expect(items[0].ended_at).not.toBeNull();
  await eventually(async () => (await rest.log('svc-status')).some(({ data }) => data['again'] === true)).toBe(true);
  expect(await told()).toHaveLength(2);
  await agent.apply(await agent.receive());

  // What is wrong afterwards is told anew.
  await rest.data('PUT', `/api/l4-chains/${id}`, { body: { enabled: true } });
  await agent.apply(await agent.receive());
  const [, , again] = await untilTold(3, betweenFacts, { heartbeat });
  expect(again).toMatchObject({ was: 'ok', status: 'down' });
  expect(again.incident.id).not.toBe(down.incident.id);

  // A deleted resource is kept until the read model of incidents must have followed.
  const { statusLedger } = rest.stores;
  const chain = { type: 'l4_chain', id } as const;
  expect(statusLedger.last(chain)).toMatchObject({ status: 'down' });
  await rest.data('DELETE', `/api/l4-chains/${id}`);
  const ended = [{ ended_at: expect.any(String) }, { id: down.incident.id, ended_at: expect.any(String) }];
  expect((await incidents()).items).toMatchObject(ended);
  await eventually(() => statusLedger.last(chain)?.isUnwritten).toBeUndefined();
  expect((await incidents()).items).toMatchObject(ended);
  skipped += 11 * 60_000;
  await rest.data('DELETE', `/api/l4-upstreams/${upstream_id}`);
  await eventually(() => statusLedger.last(chain)).toBeUndefined();
  expect(await told()).toHaveLength(3);
});

test('a certificate that is made for a few days is told at once', async () => {
  const { id } = await rest.data('POST', '/api/credentials', {
    body: { name: 'brief', key_type: 'tls_cert', self_signed: { common_name: 'a.example', days: 5 } },
  });
  const [told] = await untilTold(1);
  const resource = { type: 'credential', id, name: 'brief' };
  expect(told).toMatchObject({ resource, was: 'valid', status: '7_days', incident: null });
});

test('incidents are walked newest first, each once, with a next that is bound to its filters', async () => {
  for (const name of ['a', 'b', 'c']) {
    const { id } = await rest.data('POST', '/api/nodes', { body: { name } });
    await (await rest.connect(id)).disconnect();
  }
  await untilTold(3, comingBack);
  await eventually(async () => (await incidents()).total).toBe(3);
  const names: string[] = [];
  let after: string | null = 'start';
  while (after !== null) {
    expect(names.length).toBeLessThan(3);
    const step: JsonData = await incidents(`?page_size=2&after=${after}`);
    expect(Object.keys(step).sort()).toEqual(['items', 'next', 'page_size', 'total']);
    names.push(...step.items.map(({ resource }: JsonData) => resource.name));
    after = step.next;
  }
  expect([...names].sort()).toEqual(['a', 'b', 'c']);
  const { next } = await incidents('?page_size=1&after=start');
  for (const [query, error] of [
    [`?after=${next}&open=true`, 'other filters'],
    ['?after=start&page=1', 'page: expected none beside after'],
    ['?after=x', 'after: expected start'],
    ['?sort=name', 'sort'],
    ['?open=false', 'open: expected true'],
    ['?resource_type=route', 'resource_type: expected one of'],
  ]) {
    const answer = await rest.call('GET', `/api/incidents${query}`);
    expect([query, answer.statusCode, answer.json().error]).toEqual([query, 400, expect.stringContaining(error!)]);
  }
});

test('a clock that was a day ahead, and is set right: commands go on, and what changes is told at once', async () => {
  await rest.close();
  ahead = 86_400_000;
  rest = await startRest({}, clock);
  await rest.data('PUT', '/api/settings/connectivity', { body: settings });
  const { id } = await rest.data('POST', '/api/nodes', { body: { name: 'edge-1' } });
  const agent = await rest.connect(id);
  expect(await untilTold(1)).toMatchObject([{ status: 'online' }]);
  // So that the log's time is known.
  skipped += limits.clocks.compareEveryMs;
  await eventually(async () => (await rest.call('GET', '/metrics', { role: 'nobody' })).body).toContain(
    'svc_store_clock_difference_seconds{store="event store"}',
  );

  ahead = 0;
  const { name } = await rest.data('POST', '/api/nodes', { body: { name: 'edge-2' } });
  expect(name).toBe('edge-2');
  expect((await rest.call('GET', '/readyz', { role: 'nobody' })).json()).toEqual({ ready: true, reasons: [] });
  await eventually(() => rest.logged.join('\n')).toContain('the log has events of the future');
  await agent.disconnect();
  expect((await untilTold(2, comingBack))[1]).toMatchObject({ status: 'offline' });
  const back = await rest.connect(id);
  expect((await untilTold(3, betweenFacts))[2]).toMatchObject({ status: 'online' });
  const { generation } = await rest.data('POST', `/api/nodes/${id}/config`);
  await back.apply(await back.receive());
  const shown = async () => (await rest.data('GET', `/api/nodes/${id}`)).applied_generation;
  await eventually(shown).toBe(generation);
});
