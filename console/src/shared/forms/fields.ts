/** Which fields of a form were changed, and which one the service means. Pure. */

export type Values = Record<string, unknown>;

/** The fields that differ. */
export function changedOf<V extends Values>(now: V, before: V): Partial<V> {
  const changed = Object.entries(now).filter(([key, value]) => JSON.stringify(value) !== JSON.stringify(before[key]));
  return Object.fromEntries(changed) as Partial<V>;
}

/**
 * The labels of the changed fields, in the order of `labels`.
 * @param labels by path; those of list entries (`hops.*`) count with their list
 */
export function changedLabels(
  now: Values,
  before: Values,
  labels: Readonly<Record<string, string>>,
): readonly string[] {
  const differs = (path: string): boolean =>
    JSON.stringify(valueIn(now, path)) !== JSON.stringify(valueIn(before, path));
  const paths = Object.keys(labels).filter((path) => !path.includes('*') && differs(path));
  // Of `tls` and `tls.server_name`, the second says more.
  const exact = paths.filter((path) => !paths.some((other) => other.startsWith(`${path}.`)));
  return [...new Set(exact.map((path) => labels[path] ?? path))];
}

/** The value at a path such as `hops.0.node_id`. */
export function valueIn(values: object, path: string): unknown {
  return path
    .split('.')
    .reduce<unknown>(
      (at, name) => (typeof at === 'object' && at !== null ? (at as Record<string, unknown>)[name] : undefined),
      values,
    );
}

/** The field of the form that the sentence of a refusal names by its JSON path; undefined when it names none. */
export const fieldOf = (sentence: string, fields: readonly string[]): string | undefined =>
  closestField(/^(\S+): /.exec(sentence)?.[1] ?? '', fields);

/** The field of the form for a path in the API: `hops.0.listen_port` for `hops[0].listen_port`. */
export function closestField(jsonPath: string, fields: readonly string[]): string | undefined {
  const path = jsonPath.replaceAll(/\[(\d+)\]/g, '.$1').split('.');
  const holding = fields
    .map((field) => field.split('.'))
    .filter(
      (field) => field.length <= path.length && field.every((part, index) => part === '*' || part === path[index]),
    );
  const longest = holding.toSorted((a, b) => b.length - a.length)[0];
  return longest && path.slice(0, longest.length).join('.');
}
