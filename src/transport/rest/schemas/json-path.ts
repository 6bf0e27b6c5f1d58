/**
 * The JSON path by which a sentence names a field: `hops[0].listen_port`. Implements `docs/contract/rest.md#errors`.
 */

const keyChars = 64;

/** A key for a sentence: cut, and without control characters. */
export function printableKey(key: string): string {
  const text = key.length > keyChars ? `${key.slice(0, keyChars)}…` : key;
  return JSON.stringify(text).slice(1, -1);
}

/** The dotted path of a field; `body` for the whole body. */
export function propertyPath(parts: readonly PropertyKey[]): string {
  let path = '';
  for (const part of parts) {
    if (typeof part === 'number') path += `[${part}]`;
    else path += path === '' ? printableKey(String(part)) : `.${printableKey(String(part))}`;
  }
  return path === '' ? 'body' : path;
}
