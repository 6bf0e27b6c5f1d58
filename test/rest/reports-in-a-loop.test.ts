/** An agent that reports apply and reject in turn: what that writes into the log, and what REST shows in the end. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { agentsStream } from '../../src/kernel/event.js';
import { eventBytes } from '../../src/storage/event-json.js';
import { createShiftedClock } from '../support/agent-fixture.js';
import { until } from '../support/delivery-fixture.js';
import { eventually } from '../support/eventually.js';
import { startRest, type RestFixture } from '../support/rest-fixture.js';

const [burstBytes, bytesPerMinute] = [512 * 1024, 64 * 1024];
const clock = createShiftedClock();
let fixture: RestFixture;

beforeAll(async () => {
  fixture = await startRest({}, clock);
});
afterAll(() => fixture.close());

test('stays within the budget of its node, and the newest report of each kind is what is shown', async () => {
  const { id } = await fixture.data('POST', '/api/nodes', { body: { name: 'n' } });
  const agent = await fixture.connect(id);
  await fixture.data('POST', `/api/nodes/${id}/config`);
  const push = await agent.receive();
  const bytes = async (): Promise<number> =>
    (await fixture.log(agentsStream(id))).reduce((sum, event) => sum + eventBytes(event), 0);
  const began = clock.monotonic();
  const allowed = (): number => burstBytes + 4096 + (bytesPerMinute * (clock.monotonic() - began)) / 60_000;

  const outcomes: Promise<unknown>[] = [];
  for (let round = 0; round < 2_000; round += 1) outcomes.push(agent.reject(push), agent.apply(push));
  // All but those that wait for the budget are settled: they are recorded, or newer ones have replaced them.
  let settled = 0;
  for (const outcome of outcomes) void outcome.then(() => (settled += 1));
  await until(() => settled >= outcomes.length - 2, 'the reports are taken');
  expect(await bytes()).toBeLessThanOrEqual(allowed());
  expect(await bytes()).toBeGreaterThan(burstBytes / 2);

  clock.advance(1_000);
  const newest: Promise<void>[] = [];
  for (const report of [agent.reject, agent.apply, agent.reject]) {
    newest.push(report(push));
    clock.advance(1);
  }
  clock.advance(60_000);
  await Promise.all([...outcomes, ...newest]);
  expect(await bytes()).toBeLessThanOrEqual(allowed());
  const [applied, rejected] = (await fixture.log(agentsStream(id))).slice(-2);
  expect([applied?.type, rejected?.type]).toEqual(['AgentConfigApplied', 'AgentConfigRejected']);
  const at = rejected?.metadata.occurred_at;
  expect(Date.parse(at ?? '')).toBeGreaterThan(clock.now() - 61_000);
  await eventually(async () => (await fixture.data('GET', `/api/nodes/${id}`)).apply).toMatchObject({
    state: 'rejected',
    generation: push.generation,
    at,
  });
});
