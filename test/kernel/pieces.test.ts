/** Work in pieces: every result is the same with and without pauses, and every item is visited once, in order. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { atOnce, forEach, withPauses, runSync } from '../../src/kernel/pieces.js';

function* visited(items: readonly number[], perPiece: number): Generator<void, readonly (readonly [number, number])[]> {
  const seen: (readonly [number, number])[] = [];
  yield* forEach(items, perPiece, (item, index) => seen.push([index, item]));
  return seen;
}

test('every item is visited once and in order, with a pause after each full piece', () => {
  fc.assert(
    fc.property(fc.array(fc.integer()), fc.integer({ min: 1, max: 10 }), (items, perPiece) => {
      let pauses = 0;
      const pieces = visited(items, perPiece);
      let step = pieces.next();
      for (; step.done !== true; step = pieces.next()) pauses += 1;
      expect(step.value).toEqual([...items.entries()]);
      expect(pauses).toBe(Math.floor(items.length / perPiece));
      expect(runSync(visited(items, perPiece))).toEqual(step.value);
    }),
  );
});

test('everything else has its turn between two pieces, and none where there is nothing to pause in', async () => {
  const turns: string[] = [];
  function* pieces(): Generator<void, string> {
    turns.push('first');
    yield;
    turns.push('second');
    return 'done';
  }
  setImmediate(() => turns.push('else'));
  expect(await withPauses(pieces())).toBe('done');
  expect(turns).toEqual(['first', 'else', 'second']);
  expect(runSync(atOnce('short'))).toBe('short');
});
