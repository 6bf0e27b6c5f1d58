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
