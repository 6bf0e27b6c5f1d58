/** Which fields of a form were changed, and which one the service means. Pure. */

export type Values = Record<string, unknown>;

/** The fields that differ. */
export function changedOf<V extends Values>(now: V, before: V): Partial<V> {
  const changed = Object.entries(now).filter(([key, value]) => JSON.stringify(value) !== JSON.stringify(before[key]));
  return Object.fromEntries(changed) as Partial<V>;
}

/** The field of the form that the sentence of a refusal names by its JSON path; undefined when it names none. */
export const fieldOf = (sentence: string, fields: readonly string[]): string | undefined =>
  closestField(/^(\S+): /.exec(sentence)?.[1] ?? '', fields);

/** The field of the form that holds what has this path in the API: `hops.0.listen_port` for `hops[0].listen_port`. */
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
