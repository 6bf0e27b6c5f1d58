/** How far guided rotations are, by what the API says (`docs/contract/rollouts.md#guided-rotation`). */
import { describe, expect, test } from 'vitest';
import { rotationOf } from '../../console/src/nodes/psk-rotation.js';
import { isBehind, standingOf } from '../../console/src/service/identity-standing.js';

const candidate = { fingerprint: 'b', issued_at: '2026-01-01T00:00:00.000Z', expires_at: '2026-01-08T00:00:00.000Z' };

describe('the rotation of a PSK', () => {
  test('begins when there is a candidate, and waits for its agent', () => {
    expect(rotationOf({ psk_candidate: null, psk_fingerprint: 'a' }, undefined)).toEqual({ state: 'none' });
    expect(rotationOf({ psk_candidate: candidate, psk_fingerprint: 'a' }, undefined)).toEqual({
      state: 'waiting',
      candidate,
    });
  });

  test('is over when the candidate that was seen is the PSK, and tells when it is gone without that', () => {
    expect(rotationOf({ psk_candidate: null, psk_fingerprint: 'b' }, 'b')).toEqual({ state: 'over' });
    expect(rotationOf({ psk_candidate: null, psk_fingerprint: 'a' }, 'b')).toEqual({ state: 'gone' });
  });

  test('begins anew with another candidate', () => {
    const another = { ...candidate, fingerprint: 'c' };
    expect(rotationOf({ psk_candidate: another, psk_fingerprint: 'b' }, 'b').state).toBe('waiting');
  });
});

describe('the rotation of the identity', () => {
  test('counts those that are over, those that are not, and those on neither key', () => {
    expect(standingOf({ nodes: { current: 3, next: 5 } }, 10)).toEqual({ over: 5, old: 3, unproven: 2 });
    // A node that was deleted between the two answers.
    expect(standingOf({ nodes: { current: 3, next: 5 } }, 7).unproven).toBe(0);
  });

  test('finds a node behind by when its PSK was issued', () => {
    const since = '2026-01-02T00:00:00.000Z';
    expect(isBehind({ psk_issued_at: '2026-01-01T23:59:59.999Z' }, since)).toBe(true);
    expect(isBehind({ psk_issued_at: since }, since)).toBe(false);
    expect(isBehind({ psk_issued_at: null }, since)).toBe(false);
  });
});
