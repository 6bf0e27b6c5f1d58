/** Budgets, waiting lines, the replay cache and the processor share, each by itself, with a manual clock. */
import { randomBytes } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { createAddressBudget } from '../../src/transport/agent/admission/address-budget.js';
import { createCpuShare } from '../../src/transport/agent/admission/cpu-share.js';
import { createHandshakeGate } from '../../src/transport/agent/admission/handshake-gate.js';
import { createLine } from '../../src/transport/agent/admission/line.js';
import { createReplayCache } from '../../src/transport/agent/admission/replay-cache.js';
import { noteSuperseded } from '../../src/transport/agent/duplicates.js';
import { createManualClock } from '../support/manual-clock.js';

describe('the waiting line', () => {
  test('lets callers pass in order and turns away one whose time is over', async () => {
    let free = 0;
    const order: number[] = [];
    const line = createLine({ delay: () => (free > 0 ? 0 : Infinity), take: () => (free -= 1), maxWaiting: 10 });
    const impatient = line.enter(1);
    const callers = [1, 2].map(async (name) => {
      if (await line.enter(10_000)) order.push(name);
    });
    expect(await impatient).toBe(false);
    free = 2;
    line.poke();
    await Promise.all(callers);
    expect(order).toEqual([1, 2]);
    expect(line.waiting).toBe(0);
  });
  test('does not let a newcomer overtake waiting callers', async () => {
    let free = 0;
    const line = createLine({ delay: () => (free > 0 ? 0 : Infinity), take: () => (free -= 1), maxWaiting: 10 });
    const first = line.enter(10_000);
    free = 1;
    const second = line.enter(20);
    expect(await first).toBe(true);
    expect(await second).toBe(false);
  });
  test('turns callers away at once when it is full or closed', async () => {
    const line = createLine({ delay: () => Infinity, take: () => undefined, maxWaiting: 1 });
    const waiting = line.enter(10_000);
    expect(await line.enter(10_000)).toBe(false);
    line.close();
    expect(await waiting).toBe(false);
    expect(await line.enter(10_000)).toBe(false);
  });
});

describe('the address budget', () => {
  test('is used up by failures, refilled by time, and returned once by a refund', async () => {
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
  test('treats an IPv6 /64 as one address, and IPv4-mapped IPv6 as IPv4', async () => {
    const budget = createAddressBudget(1, 1, createManualClock());
    expect(await budget.charge('2001:db8:0:1::1', 1)).toBeDefined();
    expect(await budget.charge('2001:db8:0:1:ffff::9', 1)).toBeUndefined();
    expect(await budget.charge('2001:db8:0:2::1', 1)).toBeDefined();
    expect(await budget.charge('::ffff:192.0.2.1', 1)).toBeDefined();
    expect(await budget.charge('192.0.2.1', 1)).toBeUndefined();
  });
  test('lets the next in line pass after a refund', async () => {
    const budget = createAddressBudget(0.001, 1, createManualClock());
    const charge = await budget.charge('192.0.2.1', 1);
    const waiting = budget.charge('192.0.2.1', 10_000);
    charge?.refund();
    expect(await waiting).toBeDefined();
  });
});

describe('the replay cache', () => {
  test('keeps a message until 120 s after its own timestamp', () => {
    const cache = createReplayCache();
    const message = randomBytes(64);
    const timestamp = 1_000_000_000;
    expect(cache.note(message, timestamp, timestamp - 119_000)).toBe('new');
    expect(cache.note(message, timestamp, timestamp + 120_000)).toBe('replayed');
    expect(cache.note(randomBytes(64), timestamp + 125_000, timestamp + 121_001)).toBe('new');
    expect(cache.size).toBe(1);
  });
  test('refuses new messages when it is full, rather than forgetting old ones', () => {
    const cache = createReplayCache(2);
    const first = randomBytes(64);
    for (const message of [first, randomBytes(64)]) expect(cache.note(message, 1_000, 1_000)).toBe('new');
    expect(cache.note(randomBytes(64), 1_000, 1_000)).toBe('full');
    expect(cache.note(first, 1_000, 1_000)).toBe('replayed');
  });
});

describe('the admission of handshakes', () => {
  test('delays handshakes that have used more than their share of the processor', () => {
    const cpu = createCpuShare(0.5, 0);
    let now = 0;
    let done = 0;
    // Each handshake takes one millisecond of processor time, and only handshakes let time pass.
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
  test('counts pending sessions and running handshakes together', async () => {
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

test('two SUPERSEDED of a node within 5 minutes mean a duplicate agent', () => {
  const first = noteSuperseded([], 0);
  expect(first.duplicate).toBe(false);
  expect(noteSuperseded(first.supersedings, 300_000).duplicate).toBe(true);
  const late = noteSuperseded(first.supersedings, 300_001);
  expect(late.duplicate).toBe(false);
  expect(noteSuperseded(late.supersedings, 300_002).duplicate).toBe(true);
});
