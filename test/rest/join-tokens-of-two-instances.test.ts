/** Join tokens on two instances that share a log (`docs/contract/joining.md#join-tokens`). */
import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { JoinOutcome } from '../../src/agent/control/join.js';
import { sleep } from '../../src/kernel/background.js';
import { createShiftedClock, type ShiftedClock } from '../support/agent-fixture.js';
import { joinOf, type Machine } from '../support/machines.js';
import { startRest, type JsonData, type RestFixture } from '../support/rest-fixture.js';
import { storesInMemory } from '../support/stores-in-memory.js';

let clock: ShiftedClock;
let both: readonly [RestFixture, RestFixture];
beforeAll(async () => {
  clock = createShiftedClock();
  const shared = storesInMemory();
  both = [await startRest({ shared }, clock), await startRest({ shared }, clock)];
});
afterAll(async () => {
  for (const one of both) await one.close();
});

const make = (of: RestFixture, fields: object): Promise<JsonData> =>
  of.data('POST', '/api/join-tokens', { body: fields });

/** Repeats the request until the answer is yes or no, as a machine does. */
async function enter(of: RestFixture, token: string, machine: Machine): Promise<JoinOutcome> {
  for (let tries = 0; tries < 1_000; tries += 1) {
    const outcome = await joinOf(of.agents, clock, token, machine);
    if (outcome.kind !== 'later') return outcome;
    await sleep(10);
  }
  throw new Error('the machine is told neither yes nor no');
}

test('60 machines at once with a token of 20 uses, on both instances, become 20 nodes', async () => {
  const token = await make(both[0], { name: 'rush', uses: 20, name_prefix: 'rush-' });
  const outcomes = await Promise.all(
    Array.from({ length: 60 }, (_, index) =>
      enter(both[index % 2]!, token.token, { name: 'm', requestId: randomBytes(16) }),
    ),
  );
  const joined = outcomes.flatMap((one) => (one.kind === 'joined' ? [one] : []));
  expect(joined).toHaveLength(20);
  expect(new Set(joined.map(({ node_id }) => node_id)).size).toBe(20);
  expect(joined.map(({ node_name }) => node_name).sort()).toEqual(
    Array.from({ length: 20 }, (_, index) => (index === 0 ? 'rush-m' : `rush-m-${index + 1}`)).sort(),
  );
  for (const one of outcomes.filter(({ kind }) => kind !== 'joined')) {
    expect(one).toEqual({ kind: 'refused', message: expect.stringContaining('used up') });
  }
  for (const of of both) {
    const position = String(await of.position());
    const headers = { 'x-min-position': position };
    expect((await of.data('GET', `/api/join-tokens/${token.id}`, { headers })).used).toBe(20);
    expect((await of.data('GET', '/api/nodes?q=rush-', { headers })).total).toBe(20);
  }
});

test('a token that one instance has made or deleted is known or refused at once on the other', async () => {
  for (let round = 0; round < 10; round += 1) {
    const token = await make(both[round % 2]!, { name: `at once ${round}`, uses: 2 });
    const other = both[(round + 1) % 2]!;
    expect(await enter(other, token.token, {})).toMatchObject({ kind: 'joined' });
    await both[round % 2]!.data('DELETE', `/api/join-tokens/${token.id}`);
    expect(await enter(other, token.token, {})).toMatchObject({ kind: 'unknown' });
  }
});

test('a repeat on the other instance gets the same node', async () => {
  const token = await make(both[0], { name: 'repeat', uses: 5 });
  const requestId = randomBytes(16);
  const outcomes = await Promise.all(
    both.flatMap((of) => [enter(of, token.token, { requestId }), enter(of, token.token, { requestId })]),
  );
  expect(new Set(outcomes.map((one) => (one.kind === 'joined' ? one.node_id : one.message))).size).toBe(1);
  expect((await both[0].data('GET', `/api/join-tokens/${token.id}`)).used).toBe(1);
});
