/** `docs/contract/rest.md#errors`: 503 while a store is out of reach, and what it says of the change. */
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { ServiceError } from '../../src/kernel/errors.js';
import { startRest } from '../support/rest-client.js';
import type { RestUnderTest } from '../support/rest-client.js';

let rest: RestUnderTest;
beforeEach(async () => {
  rest = await startRest();
});
afterEach(() => rest.app.close());

test('commands are refused before anything is begun for them; reads and the sign-in go on', async () => {
  const { id } = await rest.data('POST', '/api/nodes', { body: { name: 'n' } });
  const begun = rest.plane.contexts.length;
  vi.spyOn(rest.plane.deps, 'storesAway').mockReturnValue('the event store is out of reach');
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
  expect(rest.plane.contexts.length).toBe(begun);
  expect((await rest.call('POST', '/api/nodes', { role: 'viewer', body: { name: 'm' } })).statusCode).toBe(403);
  expect((await rest.call('POST', '/api/nodes', { body: {} })).statusCode).toBe(400);
  expect((await rest.call('GET', `/api/nodes/${id}`)).statusCode).toBe(200);
  const login = { username: 'admin', password: 'correct horse battery' };
  expect((await rest.call('POST', '/api/auth/login', { role: 'nobody', body: login })).statusCode).toBe(200);
});

test('a change that stands in the log, and can not be shown any more, is not told as one that failed', async () => {
  const { id } = await rest.data('POST', '/api/nodes', { body: { name: 'n' } });
  const gone = new ServiceError('unavailable', 'The read store can not be used now.');
  vi.spyOn(rest.plane.deps.telemetry, 'presence').mockRejectedValue(gone);
  const answer = await rest.call('PUT', `/api/nodes/${id}`, { body: { name: 'm' } });
  expect(answer.statusCode).toBe(503);
  expect(answer.headers['x-position']).toBe(String(rest.plane.position()));
  expect(answer.json().error).toMatch(/^unavailable: the change was written at x-position, /);
  // The secret of a new node is shown this once: its answer needs no store.
  const made = await rest.call('POST', '/api/nodes', { body: { name: 'o' } });
  expect([made.statusCode, typeof made.json().data.control_psk]).toEqual([201, 'string']);
  expect((await rest.call('GET', `/api/nodes/${id}`)).json().error).toMatch(/^unavailable: The read store/);
});
