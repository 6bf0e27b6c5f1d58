/** Keys of index entries that are gathered come back as they were, in order, by what they begin with. */
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { createGatheredKeys } from '../../src/storage/embedded/read/gathered-keys.js';

const rest = fc.string({
  unit: fc.integer({ min: 0, max: 255 }).map((code) => String.fromCharCode(code)),
  maxLength: 40,
});
const document = fc.array(fc.record({ head: fc.constantFrom('a\0', 'b\x7f', 'b\xff'), rest }), { maxLength: 5 });

it('every key that was added is taken once, in the order of its bytes', () => {
  fc.assert(
    fc.property(fc.array(document, { maxLength: 30 }), (documents) => {
      const gathered = createGatheredKeys();
      const all: string[] = [];
      for (const keys of documents) {
        const texts = keys.map(({ head, rest: end }) => head + end);
        gathered.add(
          texts,
          keys.map(({ head }) => head),
        );
        all.push(...texts);
      }
      expect(gathered.bytes()).toBe(all.join('').length);
      expect([...gathered.take()].flat()).toEqual(all.sort());
      expect(gathered.bytes()).toBe(0);
      expect([...gathered.take()]).toEqual([]);
    }),
    { seed: 5 },
  );
});

it('keys that are added after some were taken are not mixed with them', () => {
  const gathered = createGatheredKeys();
  const long = 'k'.repeat(1900);
  gathered.add([long, 'b'], ['k', 'b']);
  const taken = gathered.take();
  expect(taken.next().value).toEqual(['b']);
  gathered.add(['c'], ['c']);
  expect([...taken]).toEqual([[long]]);
  expect([...gathered.take()]).toEqual([['c']]);
});
