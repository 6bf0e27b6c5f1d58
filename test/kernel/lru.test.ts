import { describe, expect, it } from 'vitest';
import { createLru } from '../../src/kernel/lru.js';

describe('an LRU', () => {
  it('drops the entry that was not used for longest', () => {
    const lru = createLru<string, number>({ maxEntries: 2 });
    lru.set('a', 1);
    lru.set('b', 2);
    lru.get('a');
    lru.set('c', 3);
    expect([lru.get('a'), lru.get('b'), lru.get('c'), lru.size]).toEqual([1, undefined, 3, 2]);
  });

  it('creates a value that is missing once, and counts each call as a use', () => {
    const lru = createLru<string, number>({ maxEntries: 2 });
    let created = 0;
    const value = (key: string): number => lru.getOrCreate(key, () => (created += 1));
    expect([value('a'), value('a'), value('b'), value('a'), value('c'), value('a')]).toEqual([1, 1, 2, 1, 3, 1]);
    expect(lru.get('b')).toBeUndefined();
  });

  it('keeps the sum of the weights within its bound', () => {
    const lru = createLru<string, string>({ maxEntries: 10, maxWeight: 5, weigh: (text) => text.length });
    lru.set('a', 'xx');
    lru.set('b', 'xxx');
    expect(lru.weight).toBe(5);
    lru.set('b', 'x');
    expect(lru.weight).toBe(3);
    lru.set('c', 'xxx');
    expect([lru.get('a'), lru.weight]).toEqual([undefined, 4]);
    lru.set('d', 'xxxxxx');
    expect([lru.size, lru.weight]).toEqual([0, 0]);
  });
});
