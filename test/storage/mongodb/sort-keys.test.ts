import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { compareValues } from '../../../src/storage/field-values.js';
import { indexKeys } from '../../../src/storage/mongodb/query.js';
import { equalityKey, orderKey, shadowOf } from '../../../src/storage/mongodb/sort-keys.js';
import type { Scalar } from '../../../src/storage/read-store.js';

const scalar: fc.Arbitrary<Scalar> = fc.oneof(
  fc.constantFrom(
    null,
    true,
    false,
    0,
    -0,
    5e-324,
    -5e-324,
    1e300,
    -1e300,
    '',
    '1',
    '4',
    '5',
    '\0',
    '\u{1f600}',
    '\uffee',
  ),
  fc.double({ noNaN: true, noDefaultInfinity: true }),
  fc.string({ unit: 'binary', maxLength: 300 }),
);

/** Compares like servers: null first, strings by their bytes. */
const byBytes = (a: string | null, b: string | null): number => {
  if (a === null || b === null) return Number(a !== null) - Number(b !== null);
  return Buffer.compare(Buffer.from(a), Buffer.from(b));
};

describe('the shadow keys of documents on MongoDB', () => {
  it('sort like the values', () => {
    fc.assert(
      fc.property(scalar, scalar, (a, b) => {
        expect(Math.sign(byBytes(orderKey(a), orderKey(b)))).toBe(Math.sign(compareValues(a, b)) + 0);
      }),
      { numRuns: 2000 },
    );
    expect(byBytes(orderKey(['a']), orderKey('\u{10ffff}'))).toBe(1);
    expect(orderKey(['a'])).toBe(orderKey({ b: 1 }));
  });

  it('are equal when the values are equal', () => {
    fc.assert(
      fc.property(scalar, scalar, (a, b) => {
        expect(equalityKey(a) === equalityKey(b)).toBe(a === b);
        expect(equalityKey(a)).toBe(equalityKey(a));
      }),
      { numRuns: 2000 },
    );
    const long = 'x'.repeat(500);
    expect(equalityKey(long)).not.toBe(equalityKey(`${long}y`));
    // The hash of a long string never equals the key of another string.
    expect(equalityKey(equalityKey(long))).not.toBe(equalityKey(long));
  });

  it('never need an index or a sort over two lists of one document, which MongoDB refuses', () => {
    const { order } = shadowOf({ a: ['x', 1], b: ['y'], c: { d: [1] }, e: new Uint8Array(2), f: 'z' });
    expect(Object.values(order).every((key) => typeof key === 'string')).toBe(true);
    const all = indexKeys([{ fields: ['a', 'b', 'c'] }, { fields: ['a'] }, { fields: ['b', 'a'] }]);
    for (const key of all) expect([...key.keys()].filter((path) => path.startsWith('equal.')).length).toBeLessThan(2);
    expect(all.map((key) => [...key].flat().join(' '))).toContain('live 1 equal.a 1 order.b 1 order.c -1 _id 1');
  });
});
