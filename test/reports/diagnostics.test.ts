/** Diagnostics of agents: asked for, once, whichever instance asked; kept, read, and deleted (`docs/contract/agent-protocol.md#heartbeats-commands-metrics`). */
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { limits } from '../../src/kernel/limits.js';
import { silentLogger } from '../../src/kernel/logger.js';
import { openDiagnostics } from '../../src/reports/diagnostics.js';
import { diagnosticsFacts } from '../../src/reports/from-wire.js';
import { eventually } from '../support/eventually.js';
import { createManualClock, type ManualClock } from '../support/manual-clock.js';
import { startRest, type RestFixture } from '../support/rest-fixture.js';

let clock: ManualClock;
let rest: RestFixture;
let nodeId: string;
beforeEach(async () => {
  clock = createManualClock();
  rest = await startRest({ tokenTtlSeconds: 30 * 86_400 }, clock);
  nodeId = (await rest.data('POST', '/api/nodes', { body: { name: 'exit' } })).id;
});
afterEach(() => rest.close());

const found = {
  items: [{ name: 'upstream 192.0.2.1:80', value: 'not reached: ECONNREFUSED', ok: false }],
  log: ['info configuration applied'],
};
const ask = (): Promise<{ id: string }> =>
  rest.data('POST', `/api/nodes/${nodeId}/commands`, { body: { command: 'RUN_DIAGNOSTICS' } });
/** A slow claim is answered by a later call. */
const deliver = (): Promise<void> =>
  eventually(() => rest.claims.claim(nodeId, rest.deps.fleet.node(nodeId)?.commands ?? [])).toEqual([
    'RUN_DIAGNOSTICS',
  ]);
const shown = () => rest.data('GET', `/api/nodes/${nodeId}/diagnostics`, { role: 'operator' });
const states = async (): Promise<readonly string[]> =>
  (await rest.data('GET', `/api/nodes/${nodeId}/commands`)).items.map(({ state }: { state: string }) => state);
const counted = async (outcome: string): Promise<number> => {
  clock.advance(limits.rest.metricsEveryMs);
  const text = (await rest.call('GET', '/metrics', { undescribed: true })).body;
  return Number(new RegExp(`svc_agent_diagnostics_total\\{outcome="${outcome}"\\} (\\d+)`).exec(text)?.[1]);
};
const none = { at: null, agent_version: null, items: [], log: [] };

test('a report that was asked for is kept, answers all that were delivered, and is shown to operators alone', async () => {
  expect(await shown()).toEqual(none);
  await ask();
  await deliver();
  clock.advance(limits.agent.diagnostics.everyMs);
  await ask();
  await ask();
  await deliver();
  expect(await states()).toEqual(['queued', 'delivered', 'delivered']);
  await rest.diagnostics.take(nodeId, found);
  expect(await states()).toEqual(['queued', 'answered', 'answered']);
  expect(await shown()).toEqual({ ...found, at: new Date(clock.now()).toISOString(), agent_version: null });
  const path = `/api/nodes/${nodeId}/diagnostics`;
  expect((await rest.call('GET', path, { role: 'viewer' })).statusCode).toBe(403);
  expect((await rest.call('GET', `/api/nodes/${rest.deps.ids.next()}/diagnostics`)).statusCode).toBe(404);
  expect(await counted('kept')).toBe(1);
});

test('one that nobody asked for, that was answered already, or comes after its command has expired, is dropped and counted', async () => {
  await rest.diagnostics.take(nodeId, found);
  await ask();
  await rest.diagnostics.take(nodeId, found);
  expect(await shown()).toEqual(none);
  await deliver();
  const newest = { ...found, log: ['newest'] };
  // At once: only one of a node is being kept.
  await Promise.all([rest.diagnostics.take(nodeId, newest), rest.diagnostics.take(nodeId, found)]);
  await rest.diagnostics.take(nodeId, found);
  expect(await shown()).toMatchObject(newest);
  await ask();
  clock.advance(limits.agent.diagnostics.everyMs);
  await deliver();
  clock.advance(limits.agent.commandExpiryMs);
  await rest.diagnostics.take(nodeId, found);
  expect(await shown()).toMatchObject(newest);
  expect([await counted('kept'), await counted('not_asked_for'), await counted('lost')]).toEqual([1, 5, 0]);
});

test('the newest is kept for 7 days, and deleted with its node', async () => {
  const report = async (): Promise<void> => {
    await ask();
    await deliver();
    await rest.diagnostics.take(nodeId, found);
  };
  const stored = await rest.stores.readStore.collection({ name: 'node_diagnostics', version: 1 });
  await report();
  clock.advance(limits.agent.diagnostics.keptMs);
  expect(await shown()).toMatchObject(found);
  clock.advance(1);
  expect(await shown()).toEqual(none);
  const removing = await openDiagnostics({
    readStore: rest.stores.readStore,
    clock,
    logger: silentLogger,
    removeEveryMs: 1,
    deletionTime: () => clock.now(),
    exists: () => true,
    agentVersion: () => null,
    asked: async () => [],
    answered: async () => undefined,
  });
  await eventually(() => stored.get(nodeId)).toBeUndefined();
  await removing.close();
  await report();
  expect(await stored.get(nodeId)).toBeDefined();
  await rest.data('DELETE', `/api/nodes/${nodeId}`);
  await eventually(() => stored.get(nodeId)).toBeUndefined();
});

test('what agents write stands on one line; a report that cannot be kept answers nothing', async () => {
  const wire = {
    items: [{ name: 'a\u001b[2J', value: 'b\u202e\n', ok: true }],
    log: ['c\r\u2028d'],
    timestamp: undefined,
  };
  expect(diagnosticsFacts(wire)).toEqual({ items: [{ name: 'a [2J', value: 'b  ', ok: true }], log: ['c  d'] });
  await ask();
  await deliver();
  const failing = vi.spyOn(rest.claims, 'asked').mockRejectedValueOnce(new Error('the read store is away'));
  await rest.diagnostics.take(nodeId, found);
  failing.mockRestore();
  expect([await states(), await shown(), await counted('lost')]).toEqual([['delivered'], none, 1]);
  await rest.diagnostics.take(nodeId, found);
  expect([await states(), await counted('kept')]).toEqual([['answered'], 1]);
});
