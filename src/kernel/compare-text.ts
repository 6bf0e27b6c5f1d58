/** How names compare, and the order of names and ids in lists. Implements `docs/contract/rest.md#envelope`, list queries. */
import { limits } from './limits.js';

// oxlint-disable-next-line no-control-regex -- ASCII has control characters
const ascii = /^[\u0000-\u007f]*$/;
const manyMarks = /(?:^|\P{M})\p{M}{256}/u;

/** No character in NFC stands for more than four. */
const longest = 8 * limits.rest.stringChars;

/**
 * The text in NFC; ASCII needs none. The engine sorts combining marks in quadratic time, so a text with more of them in a row
 * than any name has stays as it is, like one that is too long for everything.
 */
export const nfc = (text: string): string =>
  text.length > longest || ascii.test(text) || manyMarks.test(text) ? text : text.normalize('NFC');

/**
 * Compares strings by code point, which is also the order of their UTF-8 bytes. JavaScript compares UTF-16 code units,
 * which puts U+10000 and above before U+E000.
 */
export function compareText(a: string, b: string): number {
  if (a === b) return 0;
  // Without such units in one of them, both orders are the same, and the engine's own comparison is twice as fast.
  if (!highUnits.test(a) || !highUnits.test(b)) return a < b ? -1 : 1;
  const length = Math.min(a.length, b.length);
  for (let index = 0; index < length; index += 1) {
    const left = a.charCodeAt(index);
    const right = b.charCodeAt(index);
    if (left === right) continue;
    if (left < 0xd800 || right < 0xd800) return left - right;
    const fix = (unit: number): number => (unit >= 0xe000 ? unit - 0x800 : unit + 0x2000);
    return fix(left) - fix(right);
  }
  return a.length - b.length;
}

const highUnits = /[\ud800-\uffff]/;

/** Sorts by keys that are made once. */
export function sortedBy<T>(all: Iterable<T>, keyOf: (one: T) => string): readonly T[] {
  const keyed = Array.from(all, (one) => ({ one, key: keyOf(one) }));
  return keyed.sort((a, b) => compareText(a.key, b.key)).map(({ one }) => one);
}

/** The first ones by key, without sorting all. @param before an order that comes before that of keys */
export function firstOf<T>(
  all: Iterable<T>,
  count: number,
  keyOf: (one: T) => string,
  before: (a: T, b: T) => number = () => 0,
): readonly T[] {
  const first: { readonly one: T; readonly key: string }[] = [];
  for (const one of all) {
    const key = keyOf(one);
    const order = (other: (typeof first)[number]): number => before(one, other.one) || compareText(key, other.key);
    const last = first.at(-1);
    if (first.length === count && last !== undefined && order(last) >= 0) continue;
    const place = first.findIndex((other) => order(other) < 0);
    first.splice(place === -1 ? first.length : place, 0, { one, key });
    if (first.length > count) first.pop();
  }
  return first.map(({ one }) => one);
}
