/** JSON as a type, and its canonical text: equal values give equal bytes. */

export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };
export type JsonObject = { readonly [key: string]: Json };

/** A state, or the data of an event, as JSON. They consist of JSON, which interfaces cannot express. */
export function asJson(value: object): Json {
  return value as Json;
}

/** Undoes `asJson`. */
export function fromJson<T extends object>(json: Json): T {
  return json as T;
}

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

/** Characters that JSON escapes; all surrogates are left to `JSON.stringify`, which finds the lone ones. */
// oxlint-disable-next-line no-control-regex -- JSON escapes exactly the control characters
const escaped = /["\\\u0000-\u001f\ud800-\udfff]/;

/** Quoted keys with their colon: there are few different keys, and a lookup is cheaper than a search for escapes. */
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
 * Deep equality of two JSON values: true exactly if their canonical texts are equal. `undefined` members count as
 * missing, and a bare `undefined` counts as null.
 */
export function jsonEqual(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return (a ?? null) === (b ?? null);
  if (Array.isArray(a) || Array.isArray(b)) {
    if (!Array.isArray(a) || !Array.isArray(b)) return false;
    return a.length === b.length && a.every((value, index) => jsonEqual(value, b[index]));
  }
  const [left, right] = [a as Readonly<Record<string, unknown>>, b as Readonly<Record<string, unknown>>];
  const keys = definedKeys(left);
  return (
    keys.length === definedKeys(right).length &&
    keys.every((key) => Object.hasOwn(right, key) && right[key] !== undefined && jsonEqual(left[key], right[key]))
  );
}

function definedKeys(record: Readonly<Record<string, unknown>>): readonly string[] {
  return Object.keys(record).filter((key) => record[key] !== undefined);
}
