/** The JSON path that a sentence names a field by: `hops[0].listen_port`, `labels.region`. Implements `docs/contract/rest.md#errors`. */

const keyChars = 64;

/** A key as it may stand in a sentence: cut, and without control characters. */
export function shown(key: string): string {
  const text = key.length > keyChars ? `${key.slice(0, keyChars)}…` : key;
  return JSON.stringify(text).slice(1, -1);
}

/** The dotted path of a field; `body` for the whole. */
export function propertyPath(parts: readonly PropertyKey[]): string {
  let path = '';
  for (const part of parts) {
    if (typeof part === 'number') path += `[${part}]`;
    else path += path === '' ? shown(String(part)) : `.${shown(String(part))}`;
  }
  return path === '' ? 'body' : path;
}
