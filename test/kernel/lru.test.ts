import fc from 'fast-check';
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

  it('holds what a list in the order of uses holds, whatever is read, set and deleted', () => {
    const key = fc.integer({ min: 0, max: 7 });
    const action = fc.oneof(
      fc.record({ kind: fc.constant('get' as const), key }),
      fc.record({ kind: fc.constant('set' as const), key, value: fc.integer({ min: 0, max: 9 }) }),
      fc.record({ kind: fc.constant('delete' as const), key }),
      fc.record({ kind: fc.constant('clear' as const) }),
    );
    const property = fc.property(fc.array(action, { maxLength: 60 }), (actions) => {
      const lru = createLru<number, number>({ maxEntries: 4, maxWeight: 20, weigh: (value) => value });
      let model: (readonly [key: number, value: number])[] = [];
      const without = (gone: number): typeof model => model.filter(([one]) => one !== gone);
      const weight = (): number => model.reduce((sum, [, value]) => sum + value, 0);
      for (const one of actions) {
        switch (one.kind) {
          case 'get': {
            const found = model.find(([known]) => known === one.key);
            expect(lru.get(one.key)).toBe(found?.[1]);
            if (found !== undefined) model = [...without(one.key), found];
            break;
          }
          case 'set':
            lru.set(one.key, one.value);
            model = [...without(one.key), [one.key, one.value]];
            while (model.length > 4 || weight() > 20) model.shift();
            break;
          case 'delete':
            lru.delete(one.key);
            model = without(one.key);
            break;
          case 'clear':
            lru.clear();
            model = [];
            break;
        }
        expect([lru.size, lru.weight]).toEqual([model.length, weight()]);
      }
      for (const [known, value] of model) expect(lru.get(known)).toBe(value);
    });
    fc.assert(property);
  });
});
