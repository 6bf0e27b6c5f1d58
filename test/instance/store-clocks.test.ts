/**
 * `docs/contract/domain.md#commands-and-events`: an instance compares its clock with those of its stores. The instances
 * of these tests are gateways on one log, each with a wall clock of its own.
 */
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { createFactRecorder } from '../../src/commands/facts.js';
import type { AgentEvent } from '../../src/domain/agents/facts.js';
import { evolveAgentFacts, neverConnected } from '../../src/domain/agents/node-agent-facts.js';
import type { Clock } from '../../src/kernel/clock.js';
import { agentsStream } from '../../src/kernel/event.js';
import { randomIds } from '../../src/kernel/ids.js';
import { silentLogger } from '../../src/kernel/logger.js';
import { watchStoreClocks, type StoreClocks } from '../../src/instance/store-clocks.js';
import type { StoreTime } from '../../src/storage/event-store.js';
import { createCommandFixture, refusalOf, type CommandFixture, type FleetGateway } from '../support/command-fixture.js';
import { createNode } from '../support/fleet.js';
import { createManualClock, type ManualClock } from '../support/manual-clock.js';
import { readAll } from '../storage/contract/appending.js';
import { until } from '../support/delivery-fixture.js';
import { storesInMemory } from '../support/stores-in-memory.js';

const second = 1_000;
const hour = 3_600 * second;
const day = 24 * hour;

const opened: StoreClocks[] = [];
afterEach(async () => {
  for (const clocks of opened.splice(0)) await clocks.close();
});

/** A wall clock that is wrong by what the test says; its monotonic time is right. */
function skewable(clock: Clock, skewMs = 0): Clock & { skewMs: number } {
  const made = { skewMs, now: () => clock.now() + made.skewMs, monotonic: clock.monotonic };
  return made;
}

const storeWith = (time: () => StoreTime | undefined | Error) => ({
  time: async () => {
    const told = time();
    if (told instanceof Error) throw told;
    return told;
  },
});
const without = storeWith(() => undefined);

async function watch(
  clock: Clock,
  eventStore: { time(): Promise<StoreTime | undefined> },
  readStore = without,
): Promise<StoreClocks> {
  const stores = { 'event store': eventStore, 'read store': readStore };
  const clocks = await watchStoreClocks({ stores, clock, logger: silentLogger, lookEveryMs: 2 });
  opened.push(clocks);
  return clocks;
}

describe('two instances on one log', () => {
  let fixture: CommandFixture;
  let right: FleetGateway;
  const key = { idempotency: { key_hash: 'key', body_hash: 'body' } };
  let names = 0;
  const post = (over: FleetGateway) => over.run(createNode(`n ${(names += 1)}`), key);
  const storeOf = () => storeWith(() => ({ kind: 'clock', at: fixture.clock.now() }));

  async function instance(clock: Clock): Promise<FleetGateway> {
    const clocks = await watch(clock, storeOf());
    return fixture.gateway({
      eventStore: fixture.stores.eventStore,
      clock,
      readOnly: () => clocks.problems()[0],
      sharedTime: clocks.now,
    });
  }

  beforeEach(async () => {
    fixture = await createCommandFixture();
    right = await instance(fixture.clock);
  });
  afterEach(() => fixture.close());

  test.each([
    ['ahead of', 2 * day],
    ['behind', -2 * day],
    ['ahead of', 31 * second],
    ['behind', -31 * second],
  ])('one that is %s the store by more than 30 s refuses commands, naming store and seconds', async (where, skewMs) => {
    const clock = skewable(fixture.clock, skewMs);
    const wrong = await instance(clock);
    const refusal = await refusalOf(post(wrong));
    expect([refusal.code, refusal.message]).toEqual([
      'unavailable',
      `the clock of this instance is ${Math.abs(skewMs) / second} s ${where} the event store's; expected at most 30 s`,
    ]);
    expect(await fixture.log()).toEqual([]);
    clock.skewMs = 29 * second * Math.sign(skewMs);
    expect(await post(wrong)).toMatchObject({ kind: 'done' });
  });

  test('one whose clock jumps two days ahead recognises a repeat all the same', async () => {
    const clock = skewable(fixture.clock);
    const jumping = await instance(clock);
    expect(await post(right)).toMatchObject({ kind: 'done' });
    const clocks = await watch(clock, storeOf());
    // Commands that were let through before the jump.
    const careless = await fixture.gateway({ clock, sharedTime: clocks.now });
    clock.skewMs = 2 * day;
    expect(await post(careless)).toMatchObject({ kind: 'repeated' });
    expect((await refusalOf(post(jumping))).code).toBe('unavailable');
    for (let written = 0; written < 20; written += 1) {
      await careless.run(createNode(`other ${written}`), { idempotency: { key_hash: `${written}`, body_hash: 'b' } });
    }
    expect(await post(right), 'the commands of the wrong clock drop no key').toMatchObject({ kind: 'repeated' });
    expect(await post(careless)).toMatchObject({ kind: 'repeated' });
    fixture.clock.advance(day);
    clock.skewMs = 0;
    expect(await post(careless), 'a day later by every clock').toMatchObject({ kind: 'done' });
  });
});

describe('the time that deletes go by', () => {
  let clock: ManualClock;
  let own: Clock & { skewMs: number };
  beforeEach(() => {
    clock = createManualClock();
    own = skewable(clock);
  });

  test('is that of the slowest clock, and never behind the newest event of the log', async () => {
    const [log, documents] = [20 * second, -10 * second];
    const at = (ms: number) => storeWith(() => ({ kind: 'clock', at: clock.now() + ms }));
    const clocks = await watch(own, at(log), at(documents));
    const now = clock.now();
    expect(clocks.deletionTime(now + day)).toBe(now + documents);
    expect(clocks.deletionTime(now - day)).toBe(now - day);
    expect(clocks.deletionTime(undefined)).toBeUndefined();
  });

  test('is unknown while a clock is wrong, and while a store was never asked with success', async () => {
    const store = () => storeWith(() => ({ kind: 'clock', at: clock.now() }));
    const clocks = await watch(own, store());
    own.skewMs = 500 * day;
    expect(clocks.deletionTime(clock.now())).toBeUndefined();
    own.skewMs = 0;
    expect(clocks.deletionTime(clock.now())).toBe(clock.now());
    const away = await watch(
      own,
      store(),
      storeWith(() => new Error('away')),
    );
    expect(away.deletionTime(clock.now())).toBeUndefined();
  });

  test('on one machine whose clock is years ahead at the start it is what the log has measured', async () => {
    own.skewMs = 500 * day;
    const log = storeWith(() => ({ kind: 'not_before', at: clock.now(), measured: clock.now() + hour }));
    const clocks = await watch(own, log);
    expect(clocks.problems()).toEqual([]);
    expect(clocks.deletionTime(own.now())).toBe(clock.now() + hour);
  });
});

describe('the comparison', () => {
  let clock: ManualClock;
  let own: Clock & { skewMs: number };
  beforeEach(() => {
    clock = createManualClock();
    own = skewable(clock);
  });

  test("a store's clock that jumps is noticed within a minute, and its recovery within seconds", async () => {
    let storeAhead = 0;
    let asked = 0;
    const store = storeWith(() => {
      asked += 1;
      return { kind: 'clock', at: clock.now() + storeAhead };
    });
    const clocks = await watch(own, without, store);
    expect([asked, clocks.problems()]).toEqual([1, []]);
    storeAhead = 45 * second;
    clock.advance(59 * second);
    expect(clocks.problems()).toEqual([]);
    clock.advance(1 * second);
    await until(() => clocks.problems().length > 0, 'the jump is noticed');
    expect(clocks.problems()).toEqual([
      "the clock of this instance is 45 s behind the read store's; expected at most 30 s",
    ]);
    expect(clocks.differences()).toEqual(new Map([['read store', -45]]));
    storeAhead = 0;
    clock.advance(5 * second);
    await until(() => clocks.problems().length === 0, 'the recovery is noticed');
    expect(clocks.differences()).toEqual(new Map([['read store', 0]]));
  });

  test('a store that cannot be asked at the start is asked again after seconds, and is no problem meanwhile', async () => {
    let away = true;
    const store = storeWith(() => (away ? new Error('away') : { kind: 'clock', at: clock.now() + day }));
    const clocks = await watch(own, store);
    expect([clocks.problems(), [...clocks.differences()]]).toEqual([[], []]);
    away = false;
    clock.advance(5 * second);
    await until(() => clocks.problems().length > 0, 'the comparison is made');
    away = true;
    clock.advance(hour);
    expect(clocks.problems(), 'carried on while the store is away').toHaveLength(1);
  });

  test('a clock set back behind the newest event lets commands go on, and deletes nothing', async () => {
    let recorded: number | undefined;
    let asked = 0;
    const store = storeWith(() => {
      asked += 1;
      return recorded === undefined ? undefined : { kind: 'not_before', at: recorded, measured: recorded };
    });
    const clocks = await watch(own, store);
    recorded = own.now();
    clock.advance(60 * second);
    await until(() => clocks.differences().size === 1, 'the newest event is known');
    expect(clocks.deletionTime(own.now())).toBeDefined();
    clock.advance(hour);
    own.skewMs = -2 * hour;
    const behind = { problems: [], differences: new Map([['event store', -3540]]), deletionTime: undefined };
    const found = () => ({
      problems: clocks.problems(),
      differences: clocks.differences(),
      deletionTime: clocks.deletionTime(own.now()),
    });
    expect(found()).toEqual(behind);
    recorded = own.now();
    // The second question comes only after the answer to the first was taken.
    for (const question of ['first', 'second']) {
      const before = asked;
      clock.advance(60 * second);
      await until(() => asked > before, `the ${question} question`);
    }
    // No event that was written meanwhile hides it.
    expect(found()).toEqual({ ...behind, differences: new Map([['event store', -3420]]) });
    own.skewMs = 0;
    expect(found()).toMatchObject({ problems: [], differences: new Map([['event store', 0]]) });
    expect(clocks.deletionTime(own.now())).toBeDefined();
  });

  test('without a store that has a clock, a jump ahead does not make anything older', async () => {
    const clocks = await watch(own, without);
    const before = clocks.now();
    own.skewMs = 2 * day;
    clock.advance(second);
    expect(clocks.now()).toBe(before + second);
    own.skewMs = -hour;
    expect(clocks.now()).toBe(own.now());
  });
});

const sessionOpened = (session_id: string): AgentEvent => ({
  type: 'AgentSessionOpened',
  data: {
    node_id: 'node',
    session_id,
    instance_id: session_id,
    agent_version: session_id,
    public_ipv4: '',
    public_ipv6: '',
    detected_addresses: [],
    multiplex: false,
    multiplex_port: 0,
  },
});

test('facts of instances whose clocks are apart, within bounds, are in the order in which they happened', async () => {
  const clock = createManualClock();
  const stores = storesInMemory();
  const readStore = storeWith(() => ({ kind: 'clock', at: clock.now() }));
  const eventStore = storeWith(() => ({ kind: 'clock', at: clock.now() - 500 }));
  const recorders = await Promise.all(
    [20 * second, 0].map(async (skewMs) => {
      const { shared } = await watch(skewable(clock, skewMs), eventStore, readStore);
      return createFactRecorder({ eventStore: stores.eventStore, clock: shared, ids: randomIds, logger: silentLogger });
    }),
  );
  for (const [index, facts] of recorders.entries()) {
    const session = `session ${index}`;
    await facts.agent('node', sessionOpened(session), session);
    clock.advance(second);
  }
  let folded = neverConnected;
  for (const { data, type, metadata } of await readAll(stores.eventStore, agentsStream('node'))) {
    folded = evolveAgentFacts(
      folded,
      { type, data } as unknown as AgentEvent,
      metadata.occurred_at,
      metadata.request_id,
    );
  }
  expect(folded.agent_version).toBe('session 1');
  for (const facts of recorders) await facts.close();
  await stores.close();
});
