import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { addressKey } from '../../src/kernel/addresses.js';
import { createLoginLimiter, type LoginAdmission, type LoginLimiter } from '../../src/security/login-limiter.js';
import { createManualClock } from '../support/manual-clock.js';

const minutes = 60_000;

function admitted(result: LoginAdmission): Extract<LoginAdmission, { kind: 'admitted' }> {
  if (result.kind !== 'admitted') throw new Error(`refused for ${result.retryAfterSeconds} s`);
  return result;
}

async function fail(limiter: LoginLimiter, address: string, name: string): Promise<void> {
  admitted(await limiter.admit(address, name)).settle('failed');
}

describe('the login limiter', () => {
  it('allows five failures per address and name in five minutes, then says when to try again', async () => {
    const clock = createManualClock();
    const limiter = createLoginLimiter({ clock });
    for (let index = 0; index < 5; index += 1) {
      await fail(limiter, '192.0.2.1', 'Alice');
      clock.advance(10_000);
    }
    expect(await limiter.admit('192.0.2.1', 'alice')).toEqual({ kind: 'refused', retryAfterSeconds: 250 });
    expect((await limiter.admit('192.0.2.1', 'bob')).kind).toBe('admitted');
    expect((await limiter.admit('192.0.2.2', 'alice')).kind).toBe('admitted');
    clock.advance(250_000);
    await fail(limiter, '192.0.2.1', 'alice');
    expect(await limiter.admit('192.0.2.1', 'alice')).toEqual({ kind: 'refused', retryAfterSeconds: 10 });
  });

  it('allows twenty failures per address, whatever the names', async () => {
    const limiter = createLoginLimiter({ clock: createManualClock() });
    for (let index = 0; index < 20; index += 1) await fail(limiter, '192.0.2.1', `name${index}`);
    expect(await limiter.admit('192.0.2.1', 'fresh')).toEqual({ kind: 'refused', retryAfterSeconds: 300 });
    expect(await limiter.admit('::ffff:192.0.2.1', 'fresh')).toMatchObject({ kind: 'refused' });
    expect((await limiter.admit('192.0.2.9', 'fresh')).kind).toBe('admitted');
  });

  it('counts IPv6 addresses by their /64', async () => {
    const limiter = createLoginLimiter({ clock: createManualClock() });
    for (let index = 0; index < 20; index += 1) await fail(limiter, `2001:db8:1:2::${index.toString(16)}`, `n${index}`);
    expect((await limiter.admit('2001:db8:1:2:ffff::1', 'x')).kind).toBe('refused');
    expect((await limiter.admit('2001:db8:1:3::1', 'x')).kind).toBe('admitted');
  });

  it('slows a name that fails from many addresses, and never locks it', async () => {
    const clock = createManualClock();
    const limiter = createLoginLimiter({ clock });
    const delays: number[] = [];
    for (let index = 0; index < 200; index += 1) {
      const admission = admitted(await limiter.admit(`10.0.${index}.1`, 'admin'));
      delays.push(admission.delayMs);
      admission.settle('failed');
    }
    expect(delays.slice(0, 12)).toEqual([0, 0, 0, 0, 0, 0, 100, 200, 400, 800, 1600, 2000]);
    expect(new Set(delays.slice(11))).toEqual(new Set([2000]));
    expect(admitted(await limiter.admit('10.9.9.9', 'other')).delayMs).toBe(0);
    clock.advance(5 * minutes);
    expect(admitted(await limiter.admit('10.9.9.9', 'admin')).delayMs).toBe(0);
  });

  it('counts failures only', async () => {
    const limiter = createLoginLimiter({ clock: createManualClock() });
    for (let index = 0; index < 100; index += 1) {
      const admission = admitted(await limiter.admit('192.0.2.1', 'alice'));
      admission.settle(index % 2 === 0 ? 'succeeded' : 'abandoned');
      admission.settle('failed');
    }
    expect((await limiter.admit('192.0.2.1', 'alice')).kind).toBe('admitted');
  });

  it('keeps concurrent failures within the budget and refuses no correct sign-in', async () => {
    const limiter = createLoginLimiter({ clock: createManualClock() });
    const outcomes = await Promise.all(
      Array.from({ length: 40 }, async () => {
        const admission = await limiter.admit('192.0.2.1', 'alice');
        if (admission.kind === 'refused') return 'refused';
        await new Promise((resolve) => setImmediate(resolve));
        admission.settle('failed');
        return 'tried';
      }),
    );
    expect(outcomes.filter((outcome) => outcome === 'tried').length).toBe(5);
    const good = await Promise.all(
      Array.from({ length: 40 }, async () => {
        const admission = await limiter.admit('192.0.2.7', 'alice');
        await new Promise((resolve) => setImmediate(resolve));
        if (admission.kind === 'admitted') admission.settle('succeeded');
        return admission.kind;
      }),
    );
    expect(new Set(good)).toEqual(new Set(['admitted']));
  });

  it('keeps concurrent failures of one address within its budget, whatever the names', async () => {
    const limiter = createLoginLimiter({ clock: createManualClock() });
    const outcomes = await Promise.all(
      Array.from({ length: 40 }, async (_, index) => {
        const admission = await limiter.admit('192.0.2.1', `name${index}`);
        if (admission.kind === 'refused') return 'refused';
        await new Promise((resolve) => setImmediate(resolve));
        admission.settle('failed');
        return 'tried';
      }),
    );
    expect(outcomes.filter((outcome) => outcome === 'tried').length).toBe(20);
  });

  it('bounds the number of waiting attempts and their wait, and refuses them when closed', async () => {
    const limiter = createLoginLimiter({ clock: createManualClock(), waitMs: 1 });
    for (let index = 0; index < 5; index += 1) await limiter.admit('192.0.2.1', 'alice');
    expect(await limiter.admit('192.0.2.1', 'alice')).toEqual({ kind: 'refused', retryAfterSeconds: 1 });
    const patient = createLoginLimiter({ clock: createManualClock() });
    for (let index = 0; index < 5; index += 1) await patient.admit('192.0.2.1', 'alice');
    const waiting = Array.from({ length: 256 }, () => patient.admit('192.0.2.1', 'alice'));
    expect(await patient.admit('192.0.2.1', 'alice')).toEqual({ kind: 'refused', retryAfterSeconds: 1 });
    patient.close();
    expect(new Set((await Promise.all(waiting)).map((result) => result.kind))).toEqual(new Set(['refused']));
    expect((await patient.admit('192.0.2.1', 'bob')).kind).toBe('refused');
  });

  it('keeps its tables bounded under a flood of addresses and names', async () => {
    const limiter = createLoginLimiter({ clock: createManualClock(), maxEntries: 50 });
    for (let index = 0; index < 5; index += 1) await fail(limiter, '192.0.2.1', 'alice');
    for (let index = 0; index < 49; index += 1) await fail(limiter, `10.1.0.${index}`, `x${index}`.repeat(500));
    expect((await limiter.admit('192.0.2.1', 'alice')).kind).toBe('refused');
    for (let index = 0; index < 60; index += 1) await fail(limiter, `10.2.0.${index}`, `y${index}`);
    expect((await limiter.admit('192.0.2.1', 'alice')).kind).toBe('admitted');
  });
});

describe('the key that addresses are counted by', () => {
  it('is the same for every spelling of an address', () => {
    expect(addressKey('192.0.2.1')).toBe('192.0.2.1');
    expect(addressKey('::ffff:c000:201')).toBe('192.0.2.1');
    expect(addressKey('::ffff:192.0.2.1')).toBe('192.0.2.1');
    expect(addressKey('2001:DB8::1')).toBe(addressKey('2001:0db8:0:0:9::'));
    expect(addressKey('fe80::1%eth0')).toBe('fe80:0:0:0::/64');
    expect(addressKey('::1')).toBe('0:0:0:0::/64');
    expect(addressKey('64:ff9b::192.0.2.1')).toBe('64:ff9b:0:0::/64');
    expect(addressKey('nonsense')).toBe('unknown');
    expect(addressKey('')).toBe('unknown');
  });

  it('depends only on the first 64 bits of an IPv6 address', () => {
    fc.assert(
      fc.property(fc.ipV6(), fc.ipV4(), (six, four) => {
        expect(addressKey(four)).toBe(four);
        expect(addressKey(six)).toMatch(/^([0-9a-f]{1,4}:){4}:\/64$|^\d+\.\d+\.\d+\.\d+$/);
      }),
    );
  });
});
