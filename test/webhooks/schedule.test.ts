/** `docs/contract/automation.md#webhooks`: the schedule of failures, as a pure function of answers. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { nextAfter, retryAfterOf, type Answer } from '../../src/webhooks/schedule.js';

const [second, minute, hour] = [1000, 60_000, 3_600_000];
const failed = (status: number | null, retryAfterMs: number | null = null): Answer => ({
  status,
  error: 'it failed',
  retryAfterMs,
});
const waitsOf = (answer: Answer): readonly number[] => {
  const waits: number[] = [];
  for (let failures = 0; failures < 1_000; failures += 1) {
    const next = nextAfter(answer, failures);
    if (next.kind !== 'retry') break;
    waits.push(next.waitMs);
  }
  return waits;
};

test('a failure is tried again after 5 s, 30 s, 2 min, 10 min, 1 h, then hourly for 72 h, then no more', () => {
  expect(waitsOf(failed(500))).toEqual([
    5 * second,
    30 * second,
    2 * minute,
    10 * minute,
    hour,
    ...Array.from({ length: 72 }, () => hour),
  ]);
  expect(nextAfter(failed(500), 77)).toMatchObject({ kind: 'stop', reason: /78 tries/ });
});

test('a 410 stops at once, and a success goes on whatever was before', () => {
  expect(nextAfter(failed(410), 0)).toMatchObject({ kind: 'stop' });
  expect(nextAfter({ status: 204, error: null, retryAfterMs: null }, 76)).toEqual({ kind: 'delivered' });
});

test('Retry-After of a 429 or 503 replaces a shorter wait, at most an hour; of others it means nothing', () => {
  const answer = fc.record({
    status: fc.constantFrom(null, 301, 400, 429, 500, 503),
    error: fc.constant('it failed'),
    retryAfterMs: fc.option(fc.integer({ min: 0, max: 10 * hour })),
  });
  fc.assert(
    fc.property(answer, fc.integer({ min: 0, max: 76 }), (one, failures) => {
      const next = nextAfter(one, failures);
      const usual = nextAfter(failed(500), failures);
      if (next.kind !== 'retry' || usual.kind !== 'retry') throw new Error('no retry');
      const asked = [429, 503].includes(one.status ?? 0) ? Math.min(one.retryAfterMs ?? 0, hour) : 0;
      expect(next.waitMs).toBe(Math.max(usual.waitMs, asked));
      expect(next.waitMs).toBeLessThanOrEqual(hour);
    }),
  );
});

describe('Retry-After', () => {
  const now = Date.parse('2025-01-01T00:00:00Z');
  test.each([
    ['120', 120_000],
    ['0', 0],
    ['Wed, 01 Jan 2025 00:01:00 GMT', minute],
    ['Tue, 31 Dec 2024 00:00:00 GMT', 0],
    ['soon', null],
    [undefined, null],
  ])('of %s', (header, expected) => expect(retryAfterOf(header, now)).toBe(expected));
});
