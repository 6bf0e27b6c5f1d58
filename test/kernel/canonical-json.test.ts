/** Canonical JSON: the same bytes for equal values, and the bytes that JSON itself would write. */
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { canonicalJson, jsonEqual } from '../../src/kernel/json.js';

/** The definition, without any regard to speed. */
function plainly(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(plainly);
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).map(([key, entry]) => [key, plainly(entry)] as const);
  // Not by the order of an object's keys, which puts numbers first: as text.
  return { sorted: entries.sort(([a], [b]) => (a < b ? -1 : 1)) };
}
const written = (value: unknown): string =>
  JSON.stringify(plainly(value)).replaceAll(/\s+(?=(?:[^"]*"[^"]*")*[^"]*$)/g, '');

it('is what JSON reads back as the same value, with the keys of each object in code-unit order', () => {
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 4 }), (value) => {
      const text = canonicalJson(value);
      expect(written(JSON.parse(text))).toBe(written(JSON.parse(JSON.stringify(value))));
    }),
    { numRuns: 300 },
  );
});

it('does not depend on the order in which an object was filled', () => {
  const entries = fc.uniqueArray(fc.tuple(fc.string({ unit: 'binary' }), fc.jsonValue()), {
    selector: ([key]) => key,
    maxLength: 40,
  });
  fc.assert(
    fc.property(entries, (pairs) => {
      expect(canonicalJson(Object.fromEntries(pairs))).toBe(canonicalJson(Object.fromEntries(pairs.toReversed())));
    }),
    { numRuns: 200 },
  );
});

it.each<[unknown, string]>([
  [{ b: 1, a: undefined, '10': 2, '9': 3 }, '{"10":2,"9":3,"b":1}'],
  [[undefined, Number.NaN, -0, 1e21], '[null,null,0,1e+21]'],
  [{ 'a"b': 'line\nbreak \\ \ud800 \u{1f600}' }, '{"a\\"b":"line\\nbreak \\\\ \\ud800 \u{1f600}"}'],
  [JSON.parse('{"__proto__":{"x":1},"constructor":[]}'), '{"__proto__":{"x":1},"constructor":[]}'],
  [undefined, 'null'],
  [{}, '{}'],
])('of %j is %s', (value, text) => {
  expect(canonicalJson(value)).toBe(text);
});

it('is the same exactly for equal values', () => {
  // Few values, so that equal ones meet.
  const tree = fc.letrec((tie) => ({
    value: fc.oneof(
      { depthSize: 'small', withCrossShrink: true },
      fc.constantFrom<unknown>(null, undefined, true, 0, 1, '', 'a'),
      fc.array(tie('value'), { maxLength: 2 }),
      fc.dictionary(fc.constantFrom('a', 'b', '__proto__', 'constructor'), tie('value'), { maxKeys: 2 }),
    ),
  })).value;
  let equal = 0;
  fc.assert(
    fc.property(tree, tree, (a, b) => {
      const same = canonicalJson(a) === canonicalJson(b);
      expect(jsonEqual(a, b)).toBe(same);
      expect(jsonEqual(a, JSON.parse(JSON.stringify(a) ?? 'null'))).toBe(true);
      if (same && typeof a === 'object') equal += 1;
    }),
    { numRuns: 1000 },
  );
  expect(equal).toBeGreaterThan(10);
});
