/** `docs/contract/automation.md#event-feed`, on one instance: pages, streams, cursors, filters, and who sees what. */
import { connect } from 'node:net';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { eventually } from '../support/eventually.js';
import { openEventStream, type EventStream, type SeenEvent, type StreamChoices } from '../support/event-stream.js';
import { startRest, type JsonData, type RestFixture } from '../support/rest-fixture.js';

let rest: RestFixture;
let url: string;
const open: EventStream[] = [];
beforeAll(async () => {
  rest = await startRest();
  url = await rest.app.listen({ host: '127.0.0.1', port: 0 });
});
afterAll(async () => {
  for (const stream of open) stream.close();
  await rest.close();
});

async function stream(query = '', choices: Partial<StreamChoices> = {}): Promise<EventStream> {
  const opened = await openEventStream(url, { token: rest.tokenOf('admin'), query, ...choices });
  open.push(opened);
  return opened;
}

const page = (query: string, role: 'admin' | 'viewer' = 'admin'): Promise<JsonData> =>
  rest.data('GET', `/api/events${query}`, { role });

/** All pages behind a cursor, to the end of the log. */
async function pagesBehind(after: string, size = 500): Promise<JsonData[]> {
  const items: JsonData[] = [];
  for (let [from, pages] = [after, 0]; ; pages += 1) {
    expect(pages).toBeLessThan(1_000);
    const { items: some, cursor, caught_up } = await page(`?after=${from}&page_size=${size}`);
    items.push(...some);
    if (caught_up) return items;
    from = cursor;
  }
}

let names = 0;
async function createNode(): Promise<JsonData> {
  names += 1;
  return rest.data('POST', '/api/nodes', { body: { name: `feed-${names}` } });
}
const isReady = ({ type }: SeenEvent): boolean => type === 'ready';

test('a page from the start holds every command once and in order, as the audit shows it, whatever its size', async () => {
  const node = await createNode();
  await rest.data('PUT', `/api/nodes/${node.id}`, { body: { name: `renamed ${node.name}` } });
  const items = await pagesBehind('start');
  expect(items.map(({ cursor }) => cursor)).toEqual((await pagesBehind('start', 1)).map(({ cursor }) => cursor));
  const { items: entries } = await rest.data('GET', '/api/audit?page_size=500');
  const shown = entries.map(
    ({ revertible: _may, not_revertible_because: _why, reverted_by: _by, ...entry }: JsonData) => entry,
  );
  expect(items.map(({ data }) => data)).toEqual(shown.toReversed());
  expect(
    items.every(({ at, data, type, cursor }) => at === data.at && type === 'command' && /^[!-~]+$/.test(cursor)),
  ).toBe(true);
  // The name at that time, not the current one.
  expect(items.at(-2).data.resource.name).toBe(node.name);
  const half = items[Math.floor(items.length / 2)];
  expect((await pagesBehind(half.cursor)).map(({ cursor }) => cursor)).toEqual(
    items.slice(items.indexOf(half) + 1).map(({ cursor }) => cursor),
  );
});

test('a page from now on is empty, names its place, and waits for its first item when asked to', async () => {
  const { items, cursor, caught_up } = await page('');
  expect([items, caught_up]).toEqual([[], true]);
  const waiting = page(`?after=${cursor}&wait_ms=20000`);
  const node = await createNode();
  const { items: come } = await waiting;
  expect(come.map(({ data }: JsonData) => data.resource.id)).toEqual([node.id]);
  expect((await page(`?after=${cursor}&wait_ms=1&types=apply,rollout`)).items).toEqual([]);
});

test('a stream says when to come back, gives what happened behind its cursor, says that it has caught up, and goes on', async () => {
  const { cursor } = await page('');
  const [before, live] = [await createNode(), await stream(`?after=${cursor}`)];
  expect(live.headers).toMatchObject({
    'content-type': 'text/event-stream',
    'cache-control': 'no-store',
    'x-accel-buffering': 'no',
  });
  const ready = await live.next(isReady, 'ready');
  expect(ready.id).toBe(live.of('command')[0]?.id);
  const after = await createNode();
  await eventually(() => live.of('command').map(({ data }) => data.resource.id)).toEqual([before.id, after.id]);
  const times = live.seen.map(({ data }) => typeof data.at);
  expect(times).toEqual(['string', 'string', 'string']);
});

test('Last-Event-ID beats after, and a stream without either begins now', async () => {
  const { cursor } = await page('');
  const node = await createNode();
  const resumed = await stream('?after=start', { lastEventId: cursor });
  await resumed.next(isReady, 'ready');
  expect(resumed.of('command').map(({ data }) => data.resource.id)).toEqual([node.id]);
  const fresh = await stream();
  await fresh.next(isReady, 'ready');
  expect(fresh.of('command')).toEqual([]);
});

test('facts of agents come with the name of their node; what is written again does not come again', async () => {
  const { cursor } = await page('');
  const node = await createNode();
  const agent = await rest.connect(node.id);
  await rest.data('POST', `/api/nodes/${node.id}/config`);
  await agent.apply(await agent.receive());
  const { items } = await page(`?after=${cursor}&types=session,apply&wait_ms=20000`);
  const rest1 = items.length < 2 ? (await page(`?after=${items[0].cursor}&types=apply&wait_ms=20000`)).items : [];
  expect([...items, ...rest1].map(({ type, data }) => [type, data.node_id, data.node_name, data.state])).toEqual([
    ['session', node.id, node.name, undefined],
    ['apply', node.id, node.name, 'applied'],
  ]);
  await agent.disconnect();
});

test('filters select by type, resource, touched node and actor', async () => {
  const { cursor } = await page('');
  const [a, b] = [await createNode(), await createNode()];
  const upstream = await rest.data('POST', '/api/l4-upstreams', {
    body: { name: 'of the feed', endpoint: 'a.example:80' },
  });
  const hops = [{ node_id: a.id, listen_port: 4000, outer: 'tcp', security: 'raw' }];
  const chain = await rest.data('POST', '/api/l4-chains', {
    body: { name: 'of the feed', payload: 'tcp', hops, target: { upstream_id: upstream.id } },
    role: 'operator',
  });
  await rest.data('POST', `/api/l4-chains/${chain.id}/deploy`);
  const found = async (filters: string) =>
    (await page(`?after=${cursor}&${filters}`)).items.map(({ data }: JsonData) => data.action);
  expect(await found(`resource_id=${chain.id},${b.id}`)).toEqual(['node.create', 'l4_chain.create', 'l4_chain.deploy']);
  expect(await found('resource_type=l4_upstream')).toEqual(['l4_upstream.create']);
  expect(await found(`node_id=${a.id}`)).toEqual(['node.create', 'l4_chain.deploy']);
  expect(await found(`node_id=${b.id}`)).toEqual(['node.create']);
  expect(await found('actor=OPERATOR&resource_type=l4_chain')).toEqual(['l4_chain.create']);
  expect(await found('types=session')).toEqual([]);
});

test('users and sign-ins are shown to admins alone, in pages and in streams', async () => {
  const { cursor } = await page('');
  const live = await stream(`?after=${cursor}`, { token: rest.tokenOf('viewer') });
  const all = await stream(`?after=${cursor}`);
  await rest.data('POST', '/api/auth/users', {
    body: { username: 'newcomer', password: 'a password of words', role: 'viewer' },
  });
  await rest.call('POST', '/api/auth/login', {
    role: 'nobody',
    body: { username: 'newcomer', password: 'wrong password' },
  });
  const node = await createNode();
  await eventually(() => all.of('sign_in').map(({ data }) => data.action)).toEqual(['session.sign_in_refused']);
  await eventually(() => live.of('command', 'sign_in').map(({ data }) => data.resource.id)).toEqual([node.id]);
  expect((await page(`?after=${cursor}`, 'viewer')).items).toHaveLength(1);
  expect((await page(`?after=${cursor}&types=sign_in`, 'viewer')).items).toEqual([]);
  expect((await page(`?after=${cursor}`)).items).toHaveLength(3);
});

test('what is no cursor, no filter value or no parameter of the answer is a 400, in a page and in a stream', async () => {
  const { cursor } = await page('');
  const bent = `${cursor.slice(0, -1)}${cursor.endsWith('A') ? 'B' : 'A'}`;
  for (const [query, field] of [
    ['after=nonsense', 'after'],
    [`after=${bent}`, 'after'],
    [`after=${cursor}&after=now`, 'after'],
    ['types=command,', 'types'],
    ['page_size=501', 'page_size'],
    ['wait_ms=30001', 'wait_ms'],
  ]) {
    const answer = await rest.call('GET', `/api/events?${query}`);
    expect([query, answer.statusCode, answer.json().error]).toEqual([
      query,
      400,
      expect.stringContaining(String(field)),
    ]);
  }
  for (const query of ['?after=nonsense', '?page_size=5', '?wait_ms=1']) {
    const refused = await stream(query);
    await eventually(() => refused.ended()).toBe(true);
    expect([query, refused.status, JSON.parse(refused.body()).success]).toEqual([query, 400, false]);
  }
  expect((await stream('', { lastEventId: 'nonsense' })).status).toBe(400);
});

test('a cursor of another log is a 409', async () => {
  const other = await startRest();
  const { cursor } = await other.data('GET', '/api/events');
  await other.close();
  const answer = await rest.call('GET', `/api/events?after=${cursor}`);
  expect([answer.statusCode, answer.json().error]).toEqual([409, expect.stringContaining('after: this cursor')]);
});

test('a quiet stream gets a heartbeat with the newest cursor, though its filter matches nothing', async () => {
  const live = await stream('?types=apply');
  await live.next(isReady, 'ready');
  await createNode();
  const { cursor } = await page('');
  const { monotonic } = rest.deps.clock;
  const later = vi.spyOn(rest.deps.clock, 'monotonic').mockImplementation(() => monotonic() + 13_000);
  const heartbeat = await live.next(({ comment }) => comment === 'heartbeat', 'a heartbeat');
  later.mockRestore();
  expect(heartbeat).toMatchObject({ id: cursor, type: undefined });
});

test('a stream ends when its token does, and says so', async () => {
  const login = await rest.data('POST', '/api/auth/login', {
    role: 'nobody',
    body: { username: 'viewer', password: 'correct horse battery' },
  });
  const live = await stream('', { token: login.token });
  await live.next(isReady, 'ready');
  const headers = { authorization: `Bearer ${login.token}` };
  const streamsBefore = rest.deps.eventStreams.taken;
  const waiting = rest.app.inject({ method: 'GET', url: '/api/events?wait_ms=30000', headers });
  await eventually(() => rest.deps.eventStreams.taken).toBeGreaterThan(streamsBefore);
  const answer = await rest.app.inject({
    method: 'POST',
    url: '/api/auth/logout',
    headers,
  });
  expect(answer.statusCode).toBe(200);
  expect((await live.next(({ type }) => type === 'end', 'its end')).data.reason).toBe('token_ended');
  await eventually(() => live.ended()).toBe(true);
  expect((await waiting).statusCode).toBe(401);
});

test('a stream ends when its token expires', async () => {
  const live = await stream();
  await live.next(isReady, 'ready');
  const now = rest.deps.clock.now();
  const later = vi.spyOn(rest.deps.clock, 'now').mockReturnValue(now + 13 * 3600 * 1000);
  expect((await live.next(({ type }) => type === 'end', 'its end')).data.reason).toBe('token_ended');
  later.mockRestore();
});

test('a user has at most sixteen streams, and a closed one makes place', async () => {
  const token = rest.tokenOf('operator');
  const mine = await Promise.all(Array.from({ length: 16 }, () => stream('', { token })));
  expect(mine.map(({ status }) => status)).toEqual(mine.map(() => 200));
  const full = await stream('', { token });
  expect([full.status, full.headers['retry-after']]).toEqual([429, expect.any(String)]);
  expect((await rest.call('GET', '/api/events?wait_ms=1', { role: 'operator' })).statusCode).toBe(429);
  expect((await rest.call('GET', '/api/events', { role: 'operator' })).statusCode).toBe(200);
  for (const one of mine) one.close();
  await eventually(async () => (await rest.call('GET', '/api/events?wait_ms=1', { role: 'operator' })).statusCode).toBe(
    200,
  );
});

test('a live stream that leaves over a mebibyte for five seconds is ended; it resumes, and nothing is missing', async () => {
  const node = await createNode();
  const { cursor } = await page('');
  const slow = await stream(`?after=${cursor}`);
  await slow.next(isReady, 'ready');
  slow.pause();
  const labels = (round: number) =>
    Object.fromEntries(Array.from({ length: 32 }, (_, index) => [`k${index}`, `${round}${'\u{1F600}'.repeat(900)}`]));
  for (let round = 0; rest.waitingBytes() <= 2 ** 20; round += 1) {
    expect(round).toBeLessThan(5_000);
    await rest.data('PUT', `/api/nodes/${node.id}`, { body: { labels: labels(round) } });
  }
  const edits = (await pagesBehind(cursor)).map((item) => item.cursor);
  const { monotonic } = rest.deps.clock;
  // A first check finds that too much waits; a later one, that it has waited too long.
  await rest.data('PUT', `/api/nodes/${node.id}`, { body: { labels: labels(-1) } });
  await eventually(async () => (await pagesBehind(edits.at(-1))).length).toBe(1);
  const later = vi.spyOn(rest.deps.clock, 'monotonic').mockImplementation(() => monotonic() + 6_000);
  const waiting = rest.waitingBytes();
  await eventually(() => rest.waitingBytes()).toBeGreaterThan(waiting);
  later.mockRestore();
  slow.resume();
  const end = await slow.next(({ type }) => type === 'end', 'its end');
  expect(end.data.reason).toBe('too_slow');
  const seen = slow.of('command').map(({ id }) => id);
  const rested = await stream('', { lastEventId: String(seen.at(-1)) });
  await rested.next(isReady, 'ready');
  expect([...seen, ...rested.of('command').map(({ id }) => id)]).toEqual(
    (await pagesBehind(cursor)).map((item) => item.cursor),
  );
});

test('while a store is away a stream waits, and goes on by itself', async () => {
  const { cursor } = await page('');
  const away = vi.spyOn(rest.deps.projections, 'reached').mockResolvedValue(false);
  const live = await stream(`?after=${cursor}`);
  const node = await createNode();
  await rest.gateway.run({ type: 'DeleteNode', id: node.id, ifMatch: undefined });
  away.mockRestore();
  await eventually(() => live.of('command').map(({ data }) => data.action)).toEqual(['node.create', 'node.delete']);
});

test('a stream with a cursor of an instance that has read further waits for this one, and misses nothing', async () => {
  const { cursor: before } = await page('');
  const { feed } = rest.deps;
  const behind = feed.end();
  const first = await createNode();
  const { cursor } = await page('');
  // As if this instance had not read the last command yet: nothing is behind the cursor, which is behind its end.
  const end = vi.spyOn(feed, 'end').mockReturnValue(behind);
  let readOn = (): void => undefined;
  const waiting = vi.spyOn(feed, 'wait').mockReturnValue(new Promise((resolve) => (readOn = resolve)));
  let reads = 0;
  const { read } = feed;
  const reading = vi.spyOn(feed, 'read').mockImplementation((...args) => {
    if ((reads += 1) > 100) throw new Error('it reads again and again');
    return read(...args);
  });
  const ahead = await stream(`?after=${cursor}`);
  await eventually(() => reads).toBe(1);
  const second = await createNode();
  for (const mocked of [end, waiting]) mocked.mockRestore();
  readOn();
  await eventually(() => ahead.of('command').map(({ data }) => data.resource.id)).toEqual([second.id]);
  await ahead.next(isReady, 'ready');
  expect(reads).toBeLessThan(10);
  reading.mockRestore();
  expect((await pagesBehind(before)).map(({ data }) => data.resource.id)).toEqual([first.id, second.id]);
});

test('a stream whose connection was lost while an earlier answer of it was under way gives its place back', async () => {
  const takenBefore = rest.deps.eventStreams.taken;
  const get = `GET /api/events HTTP/1.1\r\nHost: a\r\nAccept: text/event-stream\r\nAuthorization: Bearer ${rest.tokenOf('viewer')}\r\n\r\n`;
  const client = connect(Number(new URL(url).port), '127.0.0.1');
  client.on('error', () => undefined);
  client.write(get.repeat(3));
  await eventually(() => rest.deps.eventStreams.taken).toBe(takenBefore + 3);
  client.destroy();
  await eventually(() => rest.deps.eventStreams.taken).toBe(takenBefore);
});

test('a stream ends with draining when the service stops', async () => {
  const own = await startRest();
  const at = await own.app.listen({ host: '127.0.0.1', port: 0 });
  const live = await openEventStream(at, { token: own.tokenOf('admin') });
  await live.next(isReady, 'ready');
  const waiting = own.call('GET', '/api/events?wait_ms=30000');
  await own.close();
  expect(live.of('end').map(({ data }) => data.reason)).toEqual(['draining']);
  expect((await waiting).statusCode).toBe(200);
});
