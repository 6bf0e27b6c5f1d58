/** How long the agent waits before it reconnects, and when it rekeys. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { rekeyDelay, reconnectDelay } from '../../src/agent/reconnect.js';
import type { StreamEnd } from '../../src/agent/control-stream.js';
import { SessionCloseReason } from '../../src/gen/svc/control/v1/session.js';

const unit = fc.double({ min: 0, max: 1, noNaN: true, maxExcluded: true });
const closed = (reason: SessionCloseReason, retryAfterMs = 0): StreamEnd => ({
  kind: 'closed',
  close: { reason, message: '', retryAfterMs },
});

describe('the wait before the next connection', () => {
  it('is 0.5 s to 30 s with jitter and grows up to its limit', () => {
    fc.assert(
      fc.property(fc.nat(1000), unit, (attempt, random) => {
        const delay = reconnectDelay({ kind: 'lost', detail: '' }, attempt, () => random);
        expect(delay).toBeGreaterThanOrEqual(500);
        expect(delay).toBeLessThanOrEqual(30_000);
      }),
    );
    const at = (attempt: number, random: number): number =>
      reconnectDelay({ kind: 'lost', detail: '' }, attempt, () => random);
    expect([at(0, 0), at(1, 0), at(9, 0), at(9, 1)]).toEqual([500, 1000, 15_000, 30_000]);
  });

  it('is at least what an encrypted close asks for, up to an hour', () => {
    fc.assert(
      fc.property(fc.nat(0xffff_ffff), unit, (retryAfterMs, random) => {
        const delay = reconnectDelay(closed(SessionCloseReason.DRAINING, retryAfterMs), 0, () => random);
        expect(delay).toBeGreaterThanOrEqual(Math.min(retryAfterMs, 3_600_000));
        expect(delay).toBeLessThanOrEqual(Math.max(1000, Math.min(retryAfterMs, 3_600_000)));
      }),
    );
  });

  it('is at least a minute after SUPERSEDED and at the slowest pace after REVOKED', () => {
    expect(reconnectDelay(closed(SessionCloseReason.SUPERSEDED), 0, () => 0)).toBe(60_000);
    expect(reconnectDelay(closed(SessionCloseReason.REVOKED), 0, () => 0)).toBe(30_000);
  });
});

describe('the age at which a session is replaced', () => {
  it('is the smaller of both intervals with 10 % jitter, below the 1.15 times at which the service ends it', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 10, max: 100_000 }),
        fc.integer({ min: 10, max: 100_000 }),
        unit,
        (configured, granted, random) => {
          const delay = rekeyDelay(configured, granted, () => random) / 1000;
          const base = Math.min(configured, granted);
          expect(delay).toBeGreaterThanOrEqual(base * 0.899);
          expect(delay).toBeLessThanOrEqual(base * 1.101);
          expect(delay).toBeLessThan(granted * 1.15);
        },
      ),
    );
    expect(rekeyDelay(10, 1000, () => 0)).not.toBe(rekeyDelay(10, 1000, () => 0.9));
  });
});
