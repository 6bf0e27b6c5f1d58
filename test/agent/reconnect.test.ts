/** How long the agent waits before it reconnects, and when it rekeys. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createReconnectPace, rekeyDelay, type ConnectionEnd } from '../../src/agent/control/reconnect.js';
import { SessionCloseReason } from '../../src/gen/svc/control/v1/session.js';
import { GrpcStatus } from '../../src/kernel/errors.js';

const unit = fc.double({ min: 0, max: 1, noNaN: true, maxExcluded: true });
const lost: ConnectionEnd = { kind: 'lost', detail: '' };
const unauthenticated = { kind: 'refused', status: GrpcStatus.UNAUTHENTICATED, detail: '' } as const;
const closed = (reason: SessionCloseReason, retryAfterMs = 0): ConnectionEnd => ({
  kind: 'closed',
  close: { reason, message: '', retryAfterMs },
});

/** The wait after so many connections in a row that brought no answer. */
function waitAfter(end: ConnectionEnd, attempt: number, random: () => number): number {
  const pace = createReconnectPace(random);
  for (let earlier = 0; earlier < attempt; earlier += 1) pace.after(lost);
  return pace.after(end);
}

describe('the wait before the next connection', () => {
  it('is 0.5 s to 30 s with jitter and grows up to its limit', () => {
    fc.assert(
      fc.property(fc.nat(1000), unit, (attempt, random) => {
        const delay = waitAfter(lost, attempt, () => random);
        expect(delay).toBeGreaterThanOrEqual(500);
        expect(delay).toBeLessThanOrEqual(30_000);
      }),
    );
    const at = (attempt: number, random: number): number => waitAfter(lost, attempt, () => random);
    expect([at(0, 0), at(1, 0), at(9, 0), at(9, 1)]).toEqual([500, 1000, 15_000, 30_000]);
  });

  it('begins small again once the service has answered on a session, not when one was only opened', () => {
    const pace = createReconnectPace(() => 0);
    const waits = [pace.after(lost), pace.after(unauthenticated)];
    pace.opened();
    waits.push(pace.after(lost));
    pace.answered();
    waits.push(pace.after(lost));
    expect(waits).toEqual([500, 1000, 2000, 500]);
  });

  it('is at least what an encrypted close asks for, up to an hour', () => {
    fc.assert(
      fc.property(fc.nat(0xffff_ffff), unit, (retryAfterMs, random) => {
        const delay = waitAfter(closed(SessionCloseReason.DRAINING, retryAfterMs), 0, () => random);
        expect(delay).toBeGreaterThanOrEqual(Math.min(retryAfterMs, 3_600_000));
        expect(delay).toBeLessThanOrEqual(Math.max(1000, Math.min(retryAfterMs, 3_600_000)));
      }),
    );
  });

  it('is at least a minute after SUPERSEDED, half a minute after PROTOCOL_ERROR, more if the service asks for it', () => {
    for (const [reason, ms] of [
      [SessionCloseReason.SUPERSEDED, 60_000],
      [SessionCloseReason.PROTOCOL_ERROR, 30_000],
      [SessionCloseReason.REVOKED, 300_000],
    ] as const) {
      for (const attempt of [0, 9]) expect(waitAfter(closed(reason), attempt, () => 0)).toBe(ms);
      expect(waitAfter(closed(reason, 400_000), 0, () => 0)).toBe(400_000);
    }
    for (const reason of [SessionCloseReason.IDLE, SessionCloseReason.EXPIRED, 99 as SessionCloseReason]) {
      expect(waitAfter(closed(reason), 0, () => 0)).toBe(500);
    }
  });

  it('is five minutes after REVOKED and through every refusal as unauthenticated, until a session opens', () => {
    const pace = createReconnectPace(() => 0);
    expect(pace.after(unauthenticated), 'before anything was revoked').toBe(500);
    expect(pace.after(closed(SessionCloseReason.REVOKED))).toBe(300_000);
    for (let refusals = 0; refusals < 3; refusals += 1) expect(pace.after(unauthenticated)).toBe(300_000);
    // The service is only away: nothing is known of the PSK.
    expect(pace.after({ ...unauthenticated, status: GrpcStatus.UNAVAILABLE })).toBeLessThanOrEqual(30_000);
    expect(pace.after(lost)).toBeLessThanOrEqual(30_000);
    expect(pace.after(unauthenticated)).toBe(300_000);
    pace.opened();
    expect(pace.after(unauthenticated)).toBeLessThanOrEqual(30_000);
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
