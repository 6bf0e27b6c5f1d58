/** JSON as a type, and its canonical text: equal values give equal bytes. */

export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };
export type JsonObject = { readonly [key: string]: Json };

/**
 * Canonical JSON: object keys in code-unit order, no white space, `undefined` members left out. For bytes that are
 * compared or hashed. Every command is hashed at least twice, so this is written for speed.
 */
export function canonicalJson(value: unknown): string {
  switch (typeof value) {
    case 'string':
      return quoted(value);
    case 'boolean':
      return value ? 'true' : 'false';
    case 'object':
      if (value === null) return 'null';
      return Array.isArray(value) ? canonicalArray(value) : canonicalObject(value as Record<string, unknown>);
    default:
      return JSON.stringify(value) ?? 'null';
  }
}

function canonicalArray(values: readonly unknown[]): string {
  let text = '[';
  for (let index = 0; index < values.length; index += 1) {
    if (index > 0) text += ',';
    text += canonicalJson(values[index] ?? null);
  }
  return `${text}]`;
}

function canonicalObject(record: Readonly<Record<string, unknown>>): string {
  let text = '';
  for (const key of sorted(Object.keys(record))) {
    const value = record[key];
    if (value !== undefined) text += `${text === '' ? '{' : ','}${quotedKey(key)}${canonicalJson(value)}`;
  }
  return text === '' ? '{}' : `${text}}`;
}

/** Above this, an insertion sort is slower than the built-in sort. */
const fewKeys = 24;

/** Sorts in place by code units. */
function sorted(keys: string[]): readonly string[] {
  if (keys.length > fewKeys) return keys.sort();
  for (let from = 1; from < keys.length; from += 1) {
    const key = keys[from] as string;
    let to = from;
    for (let before = keys[to - 1]; before !== undefined && before > key; before = keys[to - 1]) {
      keys[to] = before;
      to -= 1;
    }
    keys[to] = key;
  }
  return keys;
}

/** What JSON writes as an escape sequence; every surrogate is left to `JSON.stringify`, which knows the lone ones. */
// oxlint-disable-next-line no-control-regex -- JSON escapes exactly the control characters
const escaped = /["\\\u0000-\u001f\ud800-\udfff]/;

/** Quoted keys with their colon: nearly all are of the same few, and a look is cheaper than a search for what to escape. */
const quotedKeys = new Map<string, string>();
const quotedKeysHeld = 2_000;

function quotedKey(key: string): string {
  const held = quotedKeys.get(key);
  if (held !== undefined) return held;
  const made = `${quoted(key)}:`;
  if (quotedKeys.size < quotedKeysHeld) quotedKeys.set(key, made);
  return made;
}

/** The JSON text of a string. */
const quoted = (text: string): string => (escaped.test(text) ? JSON.stringify(text) : `"${text}"`);

/**
 * Deep equality of two JSON values: the same as equal canonical texts, without writing them. `undefined` members count as
 * missing, and `undefined` by itself as null. A fold compares whole rules with it.
 */
export function jsonEqual(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return (a ?? null) === (b ?? null);
  if (Array.isArray(a)) return Array.isArray(b) && equalArrays(a, b);
  return !Array.isArray(b) && equalObjects(a as Record<string, unknown>, b as Record<string, unknown>);
}

function equalArrays(a: readonly unknown[], b: readonly unknown[]): boolean {
  if (a.length !== b.length) return false;
  for (let index = 0; index < a.length; index += 1) if (!jsonEqual(a[index], b[index])) return false;
  return true;
}

function equalObjects(a: Readonly<Record<string, unknown>>, b: Readonly<Record<string, unknown>>): boolean {
  let members = 0;
  for (const key of Object.keys(a)) {
    const value = a[key];
    if (value === undefined) continue;
    members += 1;
    if (!Object.hasOwn(b, key) || b[key] === undefined || !jsonEqual(value, b[key])) return false;
  }
  for (const key of Object.keys(b)) if (b[key] !== undefined) members -= 1;
  return members === 0;
}
