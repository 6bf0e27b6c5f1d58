/** What is found in a JSON text without its value: doubled keys, depth and size. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { jsonFaults } from '../../src/kernel/json-text.js';

const wide = { depth: 64, values: 1_000_000, entries: () => 1_000_000, faults: 100 };
const keys = fc.constantFrom('a', 'b', '"', '\\', '\\"', 'é', ',', '{', '[', ']', '}', ':');

/** Members in order, so that a key may stand twice. */
type Tree = string | readonly Tree[] | { readonly members: readonly (readonly [string, Tree])[] };
const tree = fc.letrec<{ any: Tree; list: readonly Tree[]; object: Tree }>((tie) => ({
  any: fc.oneof({ depthSize: 'small' }, keys, tie('list'), tie('object')),
  list: fc.array(tie('any'), { maxLength: 4 }),
  object: fc.array(fc.tuple(keys, tie('any')), { maxLength: 4 }).map((members) => ({ members })),
})).any;

function written(value: Tree): string {
  if (typeof value === 'string') return JSON.stringify(value);
  if (!('members' in value)) return `[${value.map(written).join(' , ')}]`;
  return `{${value.members.map(([key, inner]) => `${JSON.stringify(key)} :${written(inner)}`).join(',')}}`;
}

function twice(value: Tree, at: readonly (string | number)[] = []): (readonly (string | number)[])[] {
  if (typeof value === 'string') return [];
  if (!('members' in value)) return value.flatMap((inner, index) => twice(inner, [...at, index]));
  const seen = new Set<string>();
  return value.members.flatMap(([key, inner]) => {
    const again = seen.has(key) ? [[...at, key]] : [];
    seen.add(key);
    return [...again, ...twice(inner, [...at, key])];
  });
}

const depthOf = (value: unknown): number =>
  typeof value === 'object' && value !== null ? 1 + Math.max(0, ...Object.values(value).map(depthOf)) : 0;

test('each key that stands twice is found once, at its path', () => {
  fc.assert(
    fc.property(tree, (value) => {
      const text = written(value);
      expect(jsonFaults(text, wide).map(({ at }) => at)).toEqual(twice(value));
    }),
    { numRuns: 500 },
  );
});

test('a value is refused exactly if it is deeper or wider than its bounds', () => {
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 6 }), fc.integer({ min: 1, max: 6 }), (value, bound) => {
      const text = JSON.stringify(value);
      const wider = (inner: unknown): boolean =>
        typeof inner === 'object' &&
        inner !== null &&
        (Object.keys(inner).length > bound || Object.values(inner).some(wider));
      expect(jsonFaults(text, { ...wide, depth: bound }).length > 0).toBe(
        depthOf(value) > bound || text.includes('"__proto__":'),
      );
      expect(jsonFaults(text, { ...wide, entries: () => bound }).some(({ kind }) => kind === 'too_many')).toBe(
        wider(value),
      );
    }),
    { numRuns: 300 },
  );
});

test('no text is a fault of the search, and none is deep for it', () => {
  fc.assert(
    fc.property(
      fc.string({ unit: fc.constantFrom('{', '}', '[', ']', '"', ',', ':', '\\', 'a'), maxLength: 60 }),
      (text) => {
        jsonFaults(text, wide);
      },
    ),
  );
  expect(jsonFaults('['.repeat(1_000_000), wide).map(({ kind }) => kind)).toEqual(['too_deep']);
});
