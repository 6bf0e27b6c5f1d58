/** `docs/contract/rest.md#errors`: a 503 while a store is out of reach says whether the change was written. */
import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest';
import { ServiceError } from '../../src/kernel/errors.js';
import { password, startRest, type RestFixture } from '../support/rest-fixture.js';

let rest: RestFixture;
beforeAll(async () => {
  rest = await startRest();
});
afterEach(() => vi.restoreAllMocks());
afterAll(() => rest.close());

test('a command is refused before any work is done for it; reads and sign-ins still work', async () => {
  const { id } = await rest.data('POST', '/api/nodes', { body: { name: 'n' } });
  const before = await rest.position();
  const { nodes, settings } = rest.deps.commands;
  const handlers = [
    ...(['create', 'update', 'issuePsk', 'remove'] as const).map((name) => vi.spyOn(nodes, name)),
    vi.spyOn(settings, 'update'),
  ];
  vi.spyOn(rest.deps, 'commandsRefused').mockReturnValue('the event store is out of reach');
  const error = 'unavailable: the event store is out of reach; nothing was written';
  for (const [method, url, body] of [
    ['POST', '/api/nodes', { name: 'm' }],
    ['PUT', `/api/nodes/${id}`, { name: 'm' }],
    ['POST', `/api/nodes/${id}/psk`, undefined],
    ['DELETE', `/api/nodes/${id}`, undefined],
    ['PUT', '/api/settings/connectivity', { heartbeat_interval_secs: 5 }],
  ] as const) {
    const answer = await rest.call(method, url, { body });
    expect([answer.statusCode, answer.json()]).toEqual([503, { success: false, data: null, error }]);
  }
  for (const handler of handlers) expect(handler).not.toHaveBeenCalled();
  expect(await rest.position()).toBe(before);
  expect((await rest.call('POST', '/api/nodes', { role: 'viewer', body: { name: 'm' } })).statusCode).toBe(403);
  expect((await rest.call('POST', '/api/nodes', { body: {} })).statusCode).toBe(400);
  expect((await rest.call('GET', `/api/nodes/${id}`)).statusCode).toBe(200);
  const login = { username: 'admin', password };
  expect((await rest.call('POST', '/api/auth/login', { role: 'nobody', body: login })).statusCode).toBe(200);
});

test('a change that is written but cannot be read back is not reported as failed', async () => {
  const { id } = await rest.data('POST', '/api/nodes', { body: { name: 'changed' } });
  const outage = new ServiceError('unavailable', 'The read store cannot be used now.');
  vi.spyOn(rest.deps.reports, 'presence').mockImplementation(() => {
    throw outage;
  });
  const answer = await rest.call('PUT', `/api/nodes/${id}`, { body: { name: 'm' } });
  expect(answer.statusCode).toBe(503);
  expect(answer.headers['x-position']).toBe(String(await rest.position()));
  expect(answer.json().error).toMatch(/^unavailable: the change was written at x-position, /);
  expect((await rest.call('GET', `/api/nodes/${id}`)).json().error).toMatch(/^unavailable: The read store/);
});
