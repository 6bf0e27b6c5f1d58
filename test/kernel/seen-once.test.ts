/** The memory of keys that may come once. */
import { describe, expect, test } from 'vitest';
import { createSeenOnce } from '../../src/kernel/seen-once.js';

describe('the memory of what came', () => {
  test('forgets all that expire in the same second together, and none that expires later', () => {
    const seen = createSeenOnce(100);
    for (const [key, until] of Object.entries({ a: 121_000, b: 121_999, c: 122_000 })) seen.note(key, until, 1_000);
    expect(seen.size).toBe(3);
    expect(seen.note('late', 242_000, 121_999)).toBe('new');
    expect(seen.size).toBe(4);
    expect(seen.note('late', 242_000, 122_000)).toBe('replayed');
    expect(seen.size).toBe(2);
    expect(seen.note('late', 242_000, 123_000)).toBe('replayed');
    expect(seen.size).toBe(1);
  });
  test('forgets again after a clock that was ahead has been set back', () => {
    const seen = createSeenOnce(2);
    seen.note('ahead', 9_121_000, 9_000_000);
    expect(seen.note('first', 121_000, 1_000)).toBe('new');
    expect(seen.note('second', 242_000, 122_000)).toBe('new');
  });
  test('refuses new keys when it is full, rather than forgetting old ones', () => {
    const seen = createSeenOnce(2);
    for (const key of ['first', 'second']) expect(seen.note(key, 121_000, 1_000)).toBe('new');
    expect(seen.note('third', 121_000, 1_000)).toBe('full');
    expect(seen.note('first', 121_000, 1_000)).toBe('replayed');
  });
});
