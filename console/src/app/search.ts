/**
 * The query of an address as people write it: `?status=offline&label=region:eu&label=rack`, with all values as text.
 */

/** @returns a list where a name is repeated */
export function parseSearch(search: string): Record<string, string | string[]> {
  const parameters = new URLSearchParams(search);
  return Object.fromEntries(
    [...new Set(parameters.keys())].map((name) => {
      const [first = '', ...more] = parameters.getAll(name);
      return [name, more.length === 0 ? first : [first, ...more]];
    }),
  );
}

export function stringifySearch(search: Record<string, unknown>): string {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(search)) {
    for (const one of Array.isArray(value) ? value : [value]) {
      if (one !== undefined && one !== null && one !== '') parameters.append(name, String(one));
    }
  }
  return parameters.size === 0 ? '' : `?${parameters.toString()}`;
}
