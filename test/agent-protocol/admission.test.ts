/** Budgets, waiting lines and the processor share, each by itself, with a manual clock. */
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import {
  createAddressBudget,
  createFaultyCalls,
  createNodeBudget,
} from '../../src/transport/agent/admission/budgets.js';
import { createHandshakeGate } from '../../src/transport/agent/admission/handshake-gate.js';
import { createLine } from '../../src/transport/agent/admission/line.js';
import type { AgentConnection } from '../../src/transport/listener/connection.js';
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
    expect([await line.enter(10_000), line.waiting]).toEqual([false, 1]);
    line.close();
    expect(await waiting).toBe(false);
    expect(await line.enter(10_000)).toBe(false);
  });
});

describe('a line whose turn comes with time', () => {
  beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }));
  afterEach(() => void vi.useRealTimers());

  test('looks again after the delay it was told, in whole milliseconds and one at least', async () => {
    let delay = 10.2;
    let taken = 0;
    const line = createLine({ delay: () => delay, take: () => (taken += 1), maxWaiting: 10 });
    const entered = line.enter(1_000);
    expect([line.waiting, taken]).toEqual([1, 0]);
    delay = 0.1;
    await vi.advanceTimersByTimeAsync(10);
    expect(taken).toBe(0);
    await vi.advanceTimersByTimeAsync(1);
    delay = 0;
    expect(taken).toBe(0);
    await vi.advanceTimersByTimeAsync(1);
    expect([await entered, taken, line.waiting]).toEqual([true, 1, 0]);
    // Nobody waits: the next passes at once.
    expect([await line.enter(0), taken]).toEqual([true, 2]);
  });
  test('does not look before that time', async () => {
    let looks = 0;
    const line = createLine({ delay: () => ((looks += 1), 10.2), take: () => undefined, maxWaiting: 10 });
    void line.enter(1_000);
    const before = looks;
    await vi.advanceTimersByTimeAsync(10);
    expect(looks).toBe(before);
    await vi.advanceTimersByTimeAsync(1);
    expect(looks).toBe(before + 1);
    line.close();
  });
  test('lets nobody pass once it is closed, even if there is room', async () => {
    const line = createLine({ delay: () => 0, take: () => undefined, maxWaiting: 10 });
    line.close();
    expect(await line.enter(1_000)).toBe(false);
  });
  test('does not look again by itself when only a poke can help', async () => {
    let looks = 0;
    const line = createLine({ delay: () => ((looks += 1), Infinity), take: () => undefined, maxWaiting: 10 });
    const entered = line.enter(1_000);
    const before = looks;
    await vi.advanceTimersByTimeAsync(999);
    expect(looks).toBe(before);
    await vi.advanceTimersByTimeAsync(1);
    expect([await entered, line.waiting]).toEqual([false, 0]);
  });
  test('lets nobody wait who has no time, and looks no more once it is closed', async () => {
    let looks = 0;
    const line = createLine({ delay: () => ((looks += 1), 5), take: () => undefined, maxWaiting: 10 });
    expect(await line.enter(0)).toBe(false);
    expect(await line.enter(-1)).toBe(false);
    const waiting = line.enter(1_000);
    line.close();
    expect([await waiting, line.waiting]).toEqual([false, 0]);
    const before = looks;
    await vi.advanceTimersByTimeAsync(1_000);
    expect(looks).toBe(before);
  });
});

describe('the address budget', () => {
  test('gives what is there at once, and not past those who wait in line', async () => {
    const clock = createManualClock();
    const budget = createAddressBudget(0.001, 2, clock);
    const first = budget.take('192.0.2.1');
    expect(first).toBeDefined();
    expect(budget.take('192.0.2.1')).toBeDefined();
    expect(budget.take('192.0.2.1')).toBeUndefined();
    const waiting = budget.charge('192.0.2.1', 10_000);
    clock.advance(2_000_000);
    // There is a token again, but someone waits for it.
    expect(budget.take('192.0.2.1')).toBeUndefined();
    first?.();
    expect(await waiting).toBeDefined();
    expect(budget.take('192.0.2.1')).toBeDefined();
    budget.close();
  });
  test('gives nothing once it is closed, and those who wait are turned away', async () => {
    const budget = createAddressBudget(0.001, 1, createManualClock());
    budget.take('192.0.2.1');
    const waiting = budget.charge('192.0.2.1', 10_000);
    budget.close();
    expect(await waiting).toBeUndefined();
    expect(budget.take('192.0.2.2')).toBeUndefined();
    expect(await budget.charge('192.0.2.2', 10_000)).toBeUndefined();
  });
  test('is used up by failures, refilled by time, and returned by a refund', async () => {
    const clock = createManualClock();
    const budget = createAddressBudget(5, 3, clock);
    const charges = [];
    for (let index = 0; index < 3; index += 1) charges.push(await budget.charge('192.0.2.1', 1));
    expect(charges.every((charge) => charge !== undefined)).toBe(true);
    expect(await budget.charge('192.0.2.1', 1)).toBeUndefined();
    expect(await budget.charge('192.0.2.2', 1)).toBeDefined();
    clock.advance(200);
    expect(await budget.charge('192.0.2.1', 1)).toBeDefined();
    charges[0]?.();
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
    charge?.();
    expect(await waiting).toBeDefined();
    expect(budget.take('192.0.2.1')).toBeUndefined();
  });
});

describe('the node budget', () => {
  test('is ten offers at once and one each second, for each node', () => {
    const clock = createManualClock();
    const charge = createNodeBudget(clock);
    const charges = (count: number): readonly boolean[] => Array.from({ length: count }, () => charge('n1'));
    expect(charges(11)).toEqual([...Array<boolean>(10).fill(true), false]);
    expect(charge('n2')).toBe(true);
    clock.advance(999);
    expect(charge('n1')).toBe(false);
    clock.advance(1);
    expect(charges(2)).toEqual([true, false]);
  });
});

describe('faulty calls', () => {
  const connection = (closed = false): AgentConnection =>
    ({ remoteAddress: '192.0.2.1', closed }) as unknown as AgentConnection;
  function faultyCalls() {
    const noted: object[] = [];
    const charged: string[] = [];
    const note = createFaultyCalls(
      { take: (address) => void charged.push(address) as undefined },
      { note: (fields: object) => void noted.push(fields) },
    );
    return { note, noted, charged };
  }
  test('are charged to the address, and the fifth on a connection ends it, once', () => {
    const { note, noted, charged } = faultyCalls();
    const [one, other] = [connection(), connection()];
    note(other, 'faulty');
    const ended = Array.from({ length: 6 }, () => note(one, 'faulty'));
    expect(ended).toEqual([false, false, false, false, true, false]);
    expect(charged).toEqual(Array(7).fill('192.0.2.1'));
    expect(noted).toEqual([{ reason: 'connection_faulty_calls', address: '192.0.2.1' }]);
  });
  test('that no handler saw are noted; a connection that is closed already is not ended again', () => {
    const { note, noted } = faultyCalls();
    const one = connection(true);
    const ended = Array.from({ length: 5 }, () => note(one, 'unknown'));
    expect(ended).toEqual([false, false, false, false, false]);
    expect(noted).toEqual(Array(5).fill({ reason: 'call_unknown', address: '192.0.2.1' }));
  });
});

describe('the admission of handshakes', () => {
  test('delays handshakes that have used more than their share of the processor, and pays debts at that share', async () => {
    const clock = createManualClock();
    const gate = createHandshakeGate({ clock, maxSessions: 100, cpuShare: 0.5, pending: () => 0 });
    clock.advance(1_000_000);
    // No more than a burst is saved in a quiet time.
    (await gate.enter(0))?.(250);
    (await gate.enter(0))?.(50);
    expect(await gate.enter(0)).toBeUndefined();
    // 50 ms of debt are paid in 100 ms at half a processor.
    clock.advance(99);
    expect(await gate.enter(0)).toBeUndefined();
    clock.advance(2);
    expect(await gate.enter(0)).toBeDefined();
    gate.close();
  });
  test('are 32 at once at most; the next begins when one leaves, after sockets had a turn', async () => {
    const gate = createHandshakeGate({ clock: createManualClock(), maxSessions: 100, cpuShare: 1, pending: () => 0 });
    const places = await Promise.all(Array.from({ length: 32 }, () => gate.enter(10)));
    expect(places.every((place) => place !== undefined)).toBe(true);
    const waiting = [gate.enter(10_000), gate.enter(10_000)];
    expect(gate.waiting).toBe(2);
    places[0]?.(0);
    expect(gate.waiting).toBe(2);
    await new Promise((resolve) => setImmediate(resolve));
    expect(gate.waiting).toBe(1);
    gate.poke();
    expect(gate.waiting).toBe(1);
    gate.close();
    expect((await Promise.all(waiting)).map((place) => place !== undefined)).toEqual([true, false]);
  });
  test('wait in a line as long as the sessions that may be', async () => {
    const gate = createHandshakeGate({ clock: createManualClock(), maxSessions: 2, cpuShare: 1, pending: () => 2 });
    const waiting = [gate.enter(60_000), gate.enter(60_000)];
    expect([await gate.enter(60_000), gate.waiting]).toEqual([undefined, 2]);
    gate.close();
    expect(await Promise.all(waiting)).toEqual([undefined, undefined]);
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
