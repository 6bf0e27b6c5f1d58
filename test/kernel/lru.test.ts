import { describe, expect, it } from 'vitest';
import { createLru } from '../../src/kernel/lru.js';
import { getOrMake } from '../../src/kernel/maps.js';

describe('an LRU', () => {
  it('drops the entry that was not used for longest', () => {
    const lru = createLru<number>(2);
    lru.set('a', 1);
    lru.set('b', 2);
    lru.get('a');
    lru.set('c', 3);
    expect([lru.get('a'), lru.get('b'), lru.get('c'), lru.size]).toEqual([1, undefined, 3, 2]);
  });

  it('creates a value that is missing once, and counts each call as a use', () => {
    const lru = createLru<number>(2);
    let created = 0;
    const value = (key: string): number => getOrMake(lru, key, () => (created += 1));
    expect([value('a'), value('a'), value('b'), value('a'), value('c'), value('a')]).toEqual([1, 1, 2, 1, 3, 1]);
    expect(lru.get('b')).toBeUndefined();
  });
});
