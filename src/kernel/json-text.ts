/**
 * Scans a JSON text without building its value: finds duplicate keys in one object, and measures how deep and how large
 * the value would be. It doesn't check the syntax; `JSON.parse` does. Implements strict bodies and documents of
 * `docs/contract/rest.md#envelope` and `docs/contract/automation.md#the-fleet-as-a-file`.
 */
import { nfc } from './compare-text.js';

export type JsonPath = readonly (string | number)[];

export interface JsonFault {
  /** `reserved`: a key that would set a prototype. The scan ends at the first value that is too deep or too large. */
  readonly kind: 'twice' | 'reserved' | 'too_deep' | 'too_many';
  /** For `too_many`: the list or object with too many entries; the root when the whole text has too many values. */
  readonly at: JsonPath;
  /** The earlier key that this one duplicates. */
  readonly before?: string;
}

export interface JsonBounds {
  /** Nesting of objects and lists. */
  readonly depth: number;
  /** Values in the whole text. */
  readonly values: number;
  /** Entries of one object or list. @param depth 1 for the outermost */
  entries(depth: number): number;
  /** How many faults are collected. */
  readonly faults?: number;
  /** Equal for two keys of one object that count as the same; by default after NFC. @param above path of the object */
  readonly sameKey?: (key: string, above: () => JsonPath) => string;
}

interface Open {
  /** Allocated with the first key, because most objects of a hostile text are empty. */
  keys: Map<string, string> | undefined;
  at: string | number;
  expectsKey: boolean;
  entries: number;
}

/**
 * The faults of a text, in order. Iterative, so that no text exhausts the stack; linear in its length.
 * @param text JSON; for any other text the result is meaningless
 */
export function jsonFaults(text: string, bounds: JsonBounds): readonly JsonFault[] {
  const { depth, values, entries, faults: most = 1, sameKey = nfc } = bounds;
  const open: Open[] = [];
  const found: JsonFault[] = [];
  let count = 0;
  const path = (levels = open.length): JsonPath => open.slice(0, levels).map(({ at }) => at);

  for (let index = 0; index < text.length && found.length < most; index += 1) {
    const top = open[open.length - 1];
    switch (text.charCodeAt(index)) {
      case 0x7b: // {
      case 0x5b: {
        // [
        count += 1;
        const list = text.charCodeAt(index) === 0x5b;
        if (open.length === depth) return [...found, { kind: 'too_deep', at: path() }];
        open.push({ keys: undefined, at: list ? 0 : '', expectsKey: !list, entries: 1 });
        break;
      }
      case 0x7d: // }
      case 0x5d: // ]
        open.pop();
        break;
      case 0x2c: // ,
        count += 1;
        if (count > values) return [...found, { kind: 'too_many', at: [] }];
        if (top === undefined) break;
        top.entries += 1;
        if (top.entries > entries(open.length)) return [...found, { kind: 'too_many', at: path(open.length - 1) }];
        if (typeof top.at === 'number') top.at += 1;
        else top.expectsKey = true;
        break;
      case 0x22: {
        // "
        const begin = index;
        index = endOfString(text, begin);
        if (index < 0) return found;
        if (top === undefined || !top.expectsKey) break;
        top.expectsKey = false;
        const key = keyIn(text.slice(begin, index + 1));
        top.at = key;
        const above = (): JsonPath => path(open.length - 1);
        const compared = sameKey(key, above);
        const before = top.keys?.get(compared);
        if (key === '__proto__') found.push({ kind: 'reserved', at: path() });
        else if (before !== undefined) found.push({ kind: 'twice', at: path(), before });
        top.keys ??= new Map();
        top.keys.set(compared, key);
        break;
      }
    }
  }
  return found;
}

/** The index where a string ends. By hand: a regular expression could exhaust its stack on a document in a string. */
function endOfString(text: string, begin: number): number {
  for (let end = text.indexOf('"', begin + 1); ; end = text.indexOf('"', end + 1)) {
    let escapes = 0;
    while (text.charCodeAt(end - 1 - escapes) === 0x5c) escapes += 1;
    if (end < 0 || escapes % 2 === 0) return end;
  }
}

/** The text of a quoted key; a token that is not valid JSON is returned as is. */
function keyIn(token: string): string {
  if (!token.includes('\\')) return token.slice(1, -1);
  try {
    return String(JSON.parse(token));
  } catch {
    return token;
  }
}
