/**
 * One line for each request, with the same fields everywhere, and nothing in it that a client wants to keep secret.
 * `docs/reference/log.md`.
 */
import { connect, type AddressInfo } from 'node:net';
import { afterAll, beforeAll, beforeEach, expect, test, vi } from 'vitest';
import { createBudgetedLogger } from '../../src/kernel/budgeted-logger.js';
import { ServiceError } from '../../src/kernel/errors.js';
import { until } from '../support/delivery-fixture.js';
import { createManualClock } from '../support/manual-clock.js';
import { startRest, type RestFixture } from '../support/rest-fixture.js';

let rest: RestFixture;
beforeAll(async () => {
  rest = await startRest();
  // The first call has the fixture read the OpenAPI document, which is a request as well.
  await rest.call('GET', '/api/nodes');
});
beforeEach(() => {
  rest.logged.length = 0;
  vi.restoreAllMocks();
});
afterAll(() => rest.close());

const lines = (wanted = 'request') => rest.logLines().filter(({ message }) => message === wanted);
type Counted = readonly (readonly [words: readonly string[], count: number])[];
/** Requests by route, method and class of the status. */
const counted = async (): Promise<Counted> => {
  const { values } = await rest.deps.requests.seconds.get();
  return values
    .filter(({ metricName }) => metricName?.endsWith('_count') === true)
    .map(({ labels: { route, method, status }, value }) => [[String(route), String(method), String(status)], value]);
};
const countOf = async (...words: readonly string[]): Promise<number> =>
  (await counted()).find(([known]) => known.join(' ') === words.join(' '))?.[1] ?? 0;

test('a request of a caller is one line with route, path, status, time, size and the caller', async () => {
  const created = await rest.call('POST', '/api/nodes', {
    body: { name: 'lined', issue_psk: false },
    headers: { 'x-request-id': 'my-own-id' },
  });
  const { id } = created.json().data;
  const read = await rest.call('GET', `/api/nodes/${id}?`);
  const line = {
    level: 'info',
    message: 'request',
    request_id: 'my-own-id',
    method: 'POST',
    route: '/api/nodes',
    path: '/api/nodes',
    status: 201,
    duration_ms: expect.any(Number),
    bytes: Number(created.headers['content-length']),
    user_id: expect.stringMatching(/^[0-9a-f-]{36}$/),
    address: '127.0.0.1',
  };
  expect(lines()).toEqual([
    line,
    {
      ...line,
      request_id: expect.any(String),
      method: 'GET',
      route: '/api/nodes/:id',
      path: `/api/nodes/${id}`,
      status: 200,
      bytes: Number(read.headers['content-length']),
    },
  ]);
});

test('a refused request of a caller says why; a fault is an error, with its cause in a line of its own', async () => {
  expect((await rest.call('POST', '/api/nodes', { body: { name: '' } })).statusCode).toBe(400);
  expect((await rest.call('GET', '/api/nodes?page=0')).statusCode).toBe(400);
  expect((await rest.call('DELETE', '/api/nodes', { role: 'viewer' })).statusCode).toBe(405);
  vi.spyOn(rest.deps, 'commandsRefused').mockReturnValue('the event store is out of reach');
  expect((await rest.call('POST', '/api/nodes', { body: { name: 'n' } })).statusCode).toBe(503);
  vi.restoreAllMocks();
  vi.spyOn(rest.deps.commands.nodes, 'create').mockRejectedValue(new Error('broken inside'));
  expect((await rest.call('POST', '/api/nodes', { body: { name: 'n' } })).statusCode).toBe(500);
  expect(lines().map(({ level, status, error }) => [level, status, error])).toEqual([
    ['info', 400, expect.stringMatching(/^name: /)],
    ['info', 400, expect.stringMatching(/^page: /)],
    ['info', 405, expect.any(String)],
    ['warn', 503, 'the event store is out of reach; nothing was written'],
    ['error', 500, expect.any(String)],
  ]);
  expect(lines('request failed')).toEqual([
    expect.objectContaining({
      level: 'error',
      request_id: lines().at(-1)?.['request_id'],
      error: 'Error: broken inside',
    }),
  ]);
  const { values } = await rest.deps.requests.refused.get();
  const refused = Object.fromEntries(values.map(({ labels, value }) => [labels.code, value]));
  expect(refused).toMatchObject({ invalid_request: 2, method_not_allowed: 1, unavailable: 1, internal: 1 });
});

test('probes, metrics and documentation are told at level debug only, also when they answer 503', async () => {
  vi.spyOn(rest.deps, 'readiness').mockReturnValue({ ready: false, reasons: ['catching up'] });
  for (const url of ['/healthz', '/readyz', '/metrics', '/docs', '/openapi.json']) {
    await rest.call('GET', url, { role: 'nobody' });
  }
  expect(lines().map(({ level, path }) => [level, path])).toEqual(
    ['/healthz', '/readyz', '/metrics', '/docs', '/openapi.json'].map((path) => ['debug', path]),
  );
});

test('a sign-in has a line, though it has no caller yet', async () => {
  const body = { username: 'viewer', password: 'correct horse battery' };
  expect((await rest.call('POST', '/api/auth/login', { role: 'nobody', body })).statusCode).toBe(200);
  expect(lines()).toEqual([expect.objectContaining({ level: 'info', path: '/api/auth/login', user_id: null })]);
});

test('words that are no part of a route are not shown, in paths of callers and of strangers, nor is a query', async () => {
  await rest.call('GET', '/api/nodes/hunter2-hunter2/config?generation=hunter2');
  await rest.call('GET', '/api/hunter2/nodes/%68unter2?token=hunter2');
  await rest.call('GET', `/api${'/hunter2'.repeat(100)}`);
  await rest.call('GET', '/hunter2?password=hunter2', { role: 'nobody' });
  expect(lines().map(({ route, path }) => [route, path])).toEqual([
    ['/api/nodes/:id/config', '/api/nodes/*/config'],
    [null, '/api/*/nodes/*'],
    [null, '/api/*/*/*/*/*/*/*'],
  ]);
  expect(lines('request refused')).toEqual([
    expect.objectContaining({ level: 'warn', reason: 'rest_not_found', path: '/*', status: 404 }),
  ]);
  expect(rest.logged.join('\n')).not.toContain('hunter2');
});

test('times are counted by route, method and class, and no path or method of a client becomes a label', async () => {
  const before = await countOf('/api/nodes/:id', 'GET', '4xx');
  await rest.call('GET', '/api/nodes/one');
  await rest.call('GET', '/api/nodes/two');
  expect(await countOf('/api/nodes/:id', 'GET', '4xx')).toBe(before + 2);
  const combinations = (await counted()).length;
  for (const method of ['PATCH', 'PROPFIND', 'LOCK']) await rest.call(method, '/api/one-more-path');
  for (let i = 0; i < 20; i += 1) await rest.call('GET', `/api/path-${i}`);
  expect((await counted()).length).toBeLessThanOrEqual(combinations + 2);
  for (const [[route, method, status]] of await counted()) {
    expect(route === 'unknown' || rest.app.hasRoute({ method: method as 'GET', url: route! })).toBe(true);
    expect(status).toMatch(/^([1-5]xx|aborted)$/);
  }
});

test('the size of an answer in pieces is that of its pieces; a client that goes away is named so', async () => {
  const table = await rest.call('GET', '/api/nodes/ports');
  expect(lines().at(-1)).toMatchObject({ route: '/api/nodes/ports', bytes: table.rawPayload.length });
  await rest.app.listen({ host: '127.0.0.1', port: 0 });
  let left: () => void = () => undefined;
  vi.spyOn(rest.deps.projections.audit, 'list').mockReturnValue(
    new Promise((resolve) => (left = () => resolve({ items: [], total: 0 }))),
  );
  const socket = connect((rest.app.server.address() as AddressInfo).port, '127.0.0.1');
  socket.on('error', () => undefined);
  const head = `GET /api/audit HTTP/1.1\r\nhost: h\r\nauthorization: Bearer ${rest.tokenOf('admin')}\r\n\r\n`;
  socket.write(head, () => setImmediate(() => socket.destroy()));
  await until(() => lines().some(({ path, aborted }) => path === '/api/audit' && aborted === true), 'its line');
  left();
});

test('a flood of requests of one caller is bounded, leaves room for others, and what is left out is told', async () => {
  const clock = createManualClock();
  const budgeted = createBudgetedLogger({
    logger: rest.deps.logger,
    clock,
    what: 'requests',
    source: 'address',
    linesPerSecond: 8,
    burst: 12,
  });
  vi.spyOn(rest.deps, 'requestLog', 'get').mockReturnValue(budgeted);
  for (let i = 0; i < 10; i += 1) await rest.call('GET', '/api/nodes');
  expect(lines()).toHaveLength(3);
  clock.advance(1_000);
  for (let i = 0; i < 10; i += 1) await rest.call('GET', '/api/nodes');
  expect(lines()).toHaveLength(5);
  expect(budgeted.leftOut()).toBe(15);
  // The rest of the budget is left to others.
  for (let i = 0; i < 10; i += 1) budgeted.info({ address: '192.0.2.7' }, 'request of another');
  expect(lines('request of another')).toHaveLength(3);
  expect(budgeted.leftOut()).toBe(22);
  budgeted.close();
  expect(lines('more requests than are logged one by one')).toEqual([
    expect.objectContaining({ level: 'warn', left_out: 22 }),
  ]);
});

test('an error text that is long, and one with a cause, are cut', async () => {
  const cause = new Error('c'.repeat(5_000));
  vi.spyOn(rest.deps.reports, 'vitals').mockImplementation(() => {
    throw new ServiceError('unavailable', 'm'.repeat(5_000), { cause });
  });
  expect((await rest.call('GET', '/api/nodes')).statusCode).toBe(503);
  expect(rest.logged.at(-1)?.length).toBeLessThan(1_500);
});

test('what fails in recording a request is logged, and neither its client nor the process notices', async () => {
  vi.spyOn(rest.deps.requestLog, 'info').mockImplementation(() => {
    throw new Error('the disk of the log is full');
  });
  expect((await rest.call('GET', '/api/nodes')).statusCode).toBe(200);
  await until(() => lines('a request could not be recorded').length === 1);
  expect(lines('a request could not be recorded')).toMatchObject([
    { level: 'error', error: 'Error: the disk of the log is full' },
  ]);
});
