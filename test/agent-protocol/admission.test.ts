/** Budgets, lines, the replay cache and the share of the processor, each by itself with a clock that tests move. */
import { randomBytes } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { createAddressBudget } from '../../src/transport/agent/admission/address-budget.js';
import { createCpuShare } from '../../src/transport/agent/admission/cpu-share.js';
import { createHandshakeGate } from '../../src/transport/agent/admission/handshake-gate.js';
import { createLine } from '../../src/transport/agent/admission/line.js';
import { createReplayCache } from '../../src/transport/agent/admission/replay-cache.js';
import { noteSuperseded } from '../../src/transport/agent/duplicates.js';
import { createManualClock } from '../support/manual-clock.js';

describe('line', () => {
  test('first come, first served; who waits too long is turned away', async () => {
    let free = 0;
    const order: number[] = [];
    const line = createLine({ delay: () => (free > 0 ? 0 : Infinity), take: () => (free -= 1), maxWaiting: 10 });
    const impatient = line.enter(1);
    const waiters = [1, 2].map(async (name) => {
      if (await line.enter(10_000)) order.push(name);
    });
    expect(await impatient).toBe(false);
    free = 2;
    line.poke();
    await Promise.all(waiters);
    expect(order).toEqual([1, 2]);
    expect(line.waiting).toBe(0);
  });
  test('a newcomer does not overtake those who wait', async () => {
    let free = 0;
    const line = createLine({ delay: () => (free > 0 ? 0 : Infinity), take: () => (free -= 1), maxWaiting: 10 });
    const first = line.enter(10_000);
    free = 1;
    const second = line.enter(20);
    expect(await first).toBe(true);
    expect(await second).toBe(false);
  });
  test('full or closed: turned away at once', async () => {
    const line = createLine({ delay: () => Infinity, take: () => undefined, maxWaiting: 1 });
    const waiting = line.enter(10_000);
    expect(await line.enter(10_000)).toBe(false);
    line.close();
    expect(await waiting).toBe(false);
    expect(await line.enter(10_000)).toBe(false);
  });
});

describe('address budget', () => {
  test('failures use it up, time refills it, refunds give back', async () => {
    const clock = createManualClock();
    const budget = createAddressBudget(5, 3, clock);
    const charges = [];
    for (let index = 0; index < 3; index += 1) charges.push(await budget.charge('192.0.2.1', 1));
    expect(charges.every((charge) => charge !== undefined)).toBe(true);
    expect(await budget.charge('192.0.2.1', 1)).toBeUndefined();
    expect(await budget.charge('192.0.2.2', 1)).toBeDefined();
    clock.advance(200);
    expect(await budget.charge('192.0.2.1', 1)).toBeDefined();
    charges[0]?.refund();
    charges[0]?.refund();
    expect(await budget.charge('192.0.2.1', 1)).toBeDefined();
    expect(await budget.charge('192.0.2.1', 1)).toBeUndefined();
    budget.close();
  });
  test('one /64 of IPv6 is one address, and IPv4 in IPv6 is IPv4', async () => {
    const budget = createAddressBudget(1, 1, createManualClock());
    expect(await budget.charge('2001:db8:0:1::1', 1)).toBeDefined();
    expect(await budget.charge('2001:db8:0:1:ffff::9', 1)).toBeUndefined();
    expect(await budget.charge('2001:db8:0:2::1', 1)).toBeDefined();
    expect(await budget.charge('::ffff:192.0.2.1', 1)).toBeDefined();
    expect(await budget.charge('192.0.2.1', 1)).toBeUndefined();
  });
  test('a refund lets the next in line pass', async () => {
    const budget = createAddressBudget(0.001, 1, createManualClock());
    const held = await budget.charge('192.0.2.1', 1);
    const waiting = budget.charge('192.0.2.1', 10_000);
    held?.refund();
    expect(await waiting).toBeDefined();
  });
});

describe('replay cache', () => {
  test('an entry is kept until its own timestamp + 120 s has passed', () => {
    const cache = createReplayCache();
    const message = randomBytes(64);
    const timestamp = 1_000_000_000;
    expect(cache.note(message, timestamp, timestamp - 119_000)).toBe('new');
    expect(cache.note(message, timestamp, timestamp + 120_000)).toBe('replayed');
    expect(cache.note(randomBytes(64), timestamp + 125_000, timestamp + 121_001)).toBe('new');
    expect(cache.size).toBe(1);
  });
  test('full: refuses rather than forgets', () => {
    const cache = createReplayCache(2);
    const first = randomBytes(64);
    for (const message of [first, randomBytes(64)]) expect(cache.note(message, 1_000, 1_000)).toBe('new');
    expect(cache.note(randomBytes(64), 1_000, 1_000)).toBe('full');
    expect(cache.note(first, 1_000, 1_000)).toBe('replayed');
  });
});

describe('share of the processor', () => {
  test('handshakes that cost more than their share wait until it is earned', () => {
    const cpu = createCpuShare(0.5, 0);
    let now = 0;
    let done = 0;
    // Each handshake takes one millisecond of processor time, and time passes by nothing else.
    while (cpu.wait(now) === 0) {
      cpu.settle(cpu.take(now), 1);
      now += 1;
      done += 1;
    }
    const wait = cpu.wait(now);
    expect(done).toBeGreaterThan(100);
    expect(cpu.wait(now + wait)).toBe(0);
    expect(wait).toBeGreaterThan(0);
  });
  test('pending and handshaking count together', async () => {
    let pending = 1;
    const gate = createHandshakeGate({
      clock: createManualClock(),
      maxSessions: 2,
      cpuShare: 1,
      pending: () => pending,
    });
    const place = await gate.enter(10);
    expect(place).toBeDefined();
    expect(await gate.enter(10)).toBeUndefined();
    const waiting = gate.enter(10_000);
    pending = 0;
    gate.poke();
    expect(await waiting).toBeDefined();
    gate.close();
  });
});

test('a node is duplicate at the second SUPERSEDED within 5 minutes', () => {
  const first = noteSuperseded([], 0);
  expect(first.duplicate).toBe(false);
  expect(noteSuperseded(first.supersedings, 300_000).duplicate).toBe(true);
  const late = noteSuperseded(first.supersedings, 300_001);
  expect(late.duplicate).toBe(false);
  expect(noteSuperseded(late.supersedings, 300_002).duplicate).toBe(true);
});
