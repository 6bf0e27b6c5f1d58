/** Which names are refused (`docs/contract/domain.md#names`). */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { faultOfName, faultOfSetName } from '../../src/domain/resource/name.js';

describe('a name', () => {
  test.each(['edge-1', 'Kante Süd', '東京', 'عقدة', '🛰', 'a\u00a0b', 'x\u200dy', '-', '...', 'e\u0301'])(
    'is %j',
    (name) => {
      expect(faultOfName(name)).toBeUndefined();
    },
  );

  test.each([
    ['', 'visible'],
    ['\u200b', 'visible'],
    ['\u3164', 'visible'],
    [' ', 'blank'],
    ['  ', 'blank'],
    ['edge ', 'blank'],
    ['\u00a0edge', 'blank'],
    ['\u3000edge', 'blank'],
    ['a\nb', 'control'],
    ['a\rb', 'control'],
    ['a\tb', 'control'],
    ['a\u0000b', 'control'],
    ['a\u009bb', 'control'],
    ['a\u2028b', 'control'],
    ['a\u2029b', 'control'],
    ['a\u202eb', 'direction'],
    ['a\u2066b', 'direction'],
    ['a\u200fb', 'direction'],
    ['a\u061cb', 'direction'],
    ['a\ud800', 'Unicode'],
  ])('is not %j', (name, why) => {
    expect(faultOfName(name)).toContain(why);
  });

  test('with one visible character between good ones stays good', () => {
    fc.assert(
      fc.property(fc.stringMatching(/^[\p{L}\p{N}][\p{L}\p{N} _.-]{0,20}[\p{L}\p{N}]$/u), (name) => {
        expect(faultOfName(name)).toBeUndefined();
      }),
      { numRuns: 20 },
    );
  });
});

test('a set cannot be called as a step of a path', () => {
  expect(['.', '..', '...', 'a.b', ' '].map(faultOfSetName)).toEqual([
    expect.stringContaining('"."'),
    expect.stringContaining('"."'),
    undefined,
    undefined,
    expect.stringContaining('blank'),
  ]);
});
