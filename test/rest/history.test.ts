/** What a node, a chain, an upstream and the fleet carried over time (decisions 360, 363 and 571). */
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { LinkSample, RuntimeListener } from '../../src/reports/port.js';
import { createManualClock, type ManualClock } from '../support/manual-clock.js';
import { linkOfChain, runningListener } from '../support/reported-tables.js';
import { startRest, type RestFixture } from '../support/rest-fixture.js';
import { turnsDuring } from '../support/turns.js';

const minutes = 60_000;
let clock: ManualClock;
let rest: RestFixture;
beforeEach(async () => {
  clock = createManualClock();
  rest = await startRest({}, clock);
});
afterEach(() => rest.close());

const create = async (path: string, body: object): Promise<string> => (await rest.data('POST', path, { body })).id;
const historyOf = (path: string) => rest.data('GET', `/api/${path}`, { role: 'viewer' });
const at = (): string => new Date(clock.now()).toISOString();

const link = (chain: string, bytes: number, rtt_ms: number): LinkSample =>
  linkOfChain(chain, { peer_endpoint: '192.0.2.1:80', rtt_ms, bytes_in: 3 * bytes, bytes_out: bytes });
const listener = (bytes: number, total_sessions: number): RuntimeListener =>
  runningListener(443, { bytes_in: bytes, bytes_out: 3 * bytes, total_sessions, error_sessions: 1 });

test('a chain has the bytes of its first node, the round trips of all its links, and is online while all its nodes are', async () => {
  const [entry, exit] = [
    await create('/api/nodes', { name: 'entry', address: 'entry.example' }),
    await create('/api/nodes', { name: 'exit', address: 'exit.example' }),
  ];
  const upstream = await create('/api/l4-upstreams', { name: 'web', endpoint: '192.0.2.1:80' });
  const hops = [entry, exit].map((node_id) => ({ node_id, listen_port: 443, outer: 'tcp', security: 'raw' }));
  const definition = { name: 'c', payload: 'tcp', target: { upstream_id: upstream }, hops };
  const chain = await create('/api/l4-chains', definition);
  await rest.data('POST', `/api/l4-chains/${chain}/deploy`);

  const report = async (bytes: number, sessions: number): Promise<void> => {
    await rest.report(entry, { link_metrics: [link(chain, bytes, 4)], runtime_listeners: [listener(bytes, sessions)] });
    await rest.report(exit, {
      link_metrics: [link(chain, bytes, 7.5)],
      runtime_listeners: [listener(bytes, sessions)],
    });
  };
  const first = at();
  await report(100, 2);
  clock.advance(5 * minutes);
  const second = at();
  await report(150, 3);

  const one = { bytes_in: 100, bytes_out: 300, sessions: 2, errors: 1 };
  const two = { bytes_in: 50, bytes_out: 150, sessions: 1, errors: 0 };
  const both = { bytes_in: 150, bytes_out: 450, sessions: 3, errors: 1 };
  const ofChain = await historyOf(`l4-chains/${chain}/history`);
  expect(ofChain).toEqual({
    recorded: true,
    recorded_since: null,
    step: '5m',
    points: [
      { at: first, ...one, rtt_ms: 11.5, online: 0 },
      { at: second, ...two, rtt_ms: 11.5, online: 0 },
    ],
  });
  expect((await historyOf(`l4-chains/${chain}/history?step=1h`)).points).toEqual([
    { at: first, ...both, rtt_ms: 11.5, online: 0 },
  ]);
  expect((await historyOf(`nodes/${exit}/history?from=${second}`)).points).toEqual([
    { at: second, ...two, rtt_ms: 7.5, online: 0 },
  ]);
  // An upstream has no sessions without metrics.
  const ofUpstream = await historyOf(`l4-upstreams/${upstream}/history?to=${second}`);
  expect(ofUpstream.points).toEqual([{ at: first, ...one, sessions: 0, errors: 0, rtt_ms: 7.5, online: 0 }]);

  // In minutes, the current one included; they are the default where `from` is within the hour.
  const minute = await historyOf(`l4-chains/${chain}/history?step=1m`);
  expect(minute).toEqual({ ...ofChain, recorded_since: first, step: '1m' });
  expect(await historyOf(`l4-chains/${chain}/history?from=${first}`)).toEqual(minute);
  expect((await historyOf(`nodes/${exit}/history?step=1m&from=${second}`)).points).toEqual([
    { at: second, ...two, rtt_ms: 7.5, online: 0 },
  ]);
  expect((await historyOf(`l4-upstreams/${upstream}/history?step=1m&to=${second}`)).points).toEqual(ofUpstream.points);
  // Of the fleet: both nodes, and the mean of their round trips.
  const twice = (one: object) => Object.fromEntries(Object.entries(one).map(([name, value]) => [name, 2 * value]));
  const ofFleet = [
    { at: first, ...twice(one), rtt_ms: 5.75, online: 0 },
    { at: second, ...twice(two), rtt_ms: 5.75, online: 0 },
  ];
  expect(await historyOf('dashboard/history')).toEqual({ ...ofChain, points: ofFleet });
  expect(await historyOf('dashboard/history?step=1m')).toEqual({ ...minute, points: ofFleet });
  expect((await historyOf('dashboard/history?step=1h')).points).toEqual([{ ...ofFleet[0], ...twice(both) }]);

  for (let beats = 0; beats < 30; beats += 1) {
    clock.advance(minutes / 6);
    await rest.report(entry, {});
    if (beats < 15) await rest.report(exit, {});
  }
  clock.advance(1);
  const shares = async (path: string) =>
    (await historyOf(`${path}/history?step=5m&from=${second}`)).points.map(({ online }: { online: number }) => online);
  expect(await shares(`nodes/${entry}`)).toEqual([1]);
  expect(await shares(`nodes/${exit}`)).toEqual([0.5]);
  expect(await shares(`l4-chains/${chain}`)).toEqual([0.5]);
  expect(await shares(`l4-upstreams/${upstream}`)).toEqual([0.5]);
  expect(await shares('dashboard')).toEqual([0.75]);
  // The same minute by minute. After an hour no minutes are left, and `from` gets the finest step that reaches back to it.
  const minutesOf = async (path: string) =>
    (await historyOf(`${path}/history?step=1m&from=${second}`)).points.map(({ online }: { online: number }) => online);
  expect(await minutesOf(`nodes/${exit}`)).toEqual([1, 1, 0.5]);
  expect(await minutesOf(`l4-chains/${chain}`)).toEqual([1, 1, 0.5, 0, 0]);
  expect(await minutesOf('dashboard')).toEqual([1, 1, 0.75, 0.5, 0.5]);
  clock.advance(60 * minutes);
  expect((await historyOf(`nodes/${exit}/history?step=1m`)).points).toEqual([]);
  for (const [ago, step] of [
    [60, '1m'],
    [61, '5m'],
    [24 * 60, '5m'],
    [24 * 60 + 1, '1h'],
    [40 * 24 * 60, '1h'],
  ] as const) {
    const from = new Date(clock.now() - ago * minutes).toISOString();
    expect([ago, (await historyOf(`dashboard/history?from=${from}`)).step]).toEqual([ago, step]);
  }
});

test('a chain shows the traffic of its first listener, over the last five minutes or between two reports', async () => {
  const [entry, exit] = [
    await create('/api/nodes', { name: 'a' }),
    await create('/api/nodes', { name: 'b', address: 'b.example' }),
  ];
  const hops = [entry, exit].map((node_id) => ({ node_id, listen_port: 443, outer: 'tcp', security: 'raw' }));
  const body = { name: 'c', payload: 'tcp', target: { endpoint: '192.0.2.1:80' }, hops };
  const chain = await create('/api/l4-chains', body);
  const traffic = async () => (await rest.data('GET', `/api/l4-chains/${chain}`)).traffic;
  const report = async (bytes: number, sessions: number, process_id = 'aa'): Promise<void> => {
    await rest.report(entry, { process_id, runtime_listeners: [listener(bytes, sessions)] });
    await rest.report(exit, { runtime_listeners: [listener(9 * bytes, 9 * sessions)] });
  };
  await report(100, 2);
  clock.advance(minutes);
  await report(100, 2);
  expect(await traffic()).toBe(null);
  await rest.data('POST', `/api/l4-chains/${chain}/deploy`);
  clock.advance(10_000);
  await report(200, 3);
  // Since the previous report, 10 seconds ago; 300 of the bytes came back.
  expect(await traffic()).toEqual({ bytes_per_sec: 40, sessions_per_min: 6 });
  clock.advance(10_000);
  await report(200, 3);
  expect(await traffic()).toEqual({ bytes_per_sec: 20, sessions_per_min: 3 });
  // A new process of the agent counts from 0.
  for (let beats = 1; beats <= 40; beats += 1) {
    clock.advance(10_000);
    await report(10 * beats, beats, 'bb');
  }
  const steady = { bytes_per_sec: 4, sessions_per_min: 6 };
  expect(await traffic()).toEqual(steady);
  expect((await rest.data('GET', '/api/l4-chains')).items[0].traffic).toEqual(steady);
  // Reports over five minutes apart count one by one, and without reports nothing is known.
  clock.advance(20 * minutes);
  await report(1_600, 40, 'bb');
  const { bytes_per_sec, sessions_per_min } = await traffic();
  expect([bytes_per_sec, sessions_per_min < 0.3]).toEqual([4, true]);
  clock.advance(6 * minutes + 1);
  expect(await traffic()).toBe(null);
  // Those of a clock that is a day ahead for a while do not count once it is right.
  for (const [beat, ahead] of [24 * 60, 0, -24 * 60, 0, 0].entries()) {
    clock.jump(ahead * minutes);
    await report(1_600 + 240 * beat, 40 + 6 * beat, 'bb');
    clock.advance(minutes);
  }
  expect(await traffic()).toEqual({ bytes_per_sec: 16, sessions_per_min: 6 });
});

test('a time that is none, another step and a stretch that ends before it begins are refused by name', async () => {
  const node = await create('/api/nodes', { name: 'n' });
  const refused = async (query: string) => {
    const answer = await rest.call('GET', `/api/nodes/${node}/history?${query}`);
    return [answer.statusCode, answer.json().error];
  };
  expect(await refused('step=10m')).toEqual([400, expect.stringContaining('step: expected 1m, 5m or 1h')]);
  expect(await refused('from=yesterday')).toEqual([400, expect.stringContaining('from: expected a time')]);
  expect(await refused('from=2030-01-02T00:00:00Z&to=2030-01-01T00:00:00Z')).toEqual([
    400,
    'invalid_request: from: expected a time before "to", 2030-01-01T00:00:00.000Z',
  ]);
  expect((await rest.call('GET', `/api/nodes/${rest.deps.ids.next()}/history`)).statusCode).toBe(404);
});

test('of an upstream that many nodes dial, the points are read and joined in turns of the event loop', async () => {
  const upstream = await create('/api/l4-upstreams', { name: 'web', endpoint: '192.0.2.1:80' });
  const nodes: string[] = [];
  for (let number = 0; number < 12; number += 1) {
    const node_id = await create('/api/nodes', { name: `n${number}`, address: `n${number}.example` });
    const hops = [{ node_id, listen_port: 443, outer: 'tcp', security: 'raw' }];
    const definition = { name: `c${number}`, payload: 'tcp', target: { upstream_id: upstream }, hops };
    await rest.data('POST', `/api/l4-chains/${await create('/api/l4-chains', definition)}/deploy`);
    nodes.push(node_id);
  }
  let [asked, atOnce] = [0, 0];
  const history = vi.spyOn(rest.deps.reports, 'history').mockImplementation(async () => {
    asked += 1;
    atOnce = Math.max(atOnce, asked);
    // As long as a few documents take.
    for (const until = performance.now() + 11; performance.now() < until;);
    await Promise.resolve();
    asked -= 1;
    return new Map();
  });
  const [answer, turns] = await turnsDuring(historyOf(`l4-upstreams/${upstream}/history`));
  expect(answer.points).toEqual([]);
  expect([history.mock.calls.length, atOnce]).toEqual([1 + nodes.length, 1]);
  expect(turns).toBeGreaterThan(nodes.length);
  history.mockRestore();
});
