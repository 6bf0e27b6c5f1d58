/** The differences of two versions of a resource, field by field. Pure. */

export interface Change {
  readonly path: string;
  readonly before?: unknown;
  readonly after?: unknown;
}

/** @returns one change for each field that differs, by its path in the API */
export function differencesOf(before: unknown, after: unknown, path = ''): readonly Change[] {
  if (JSON.stringify(before) === JSON.stringify(after)) return [];
  if (Array.isArray(before ?? after) && isListOfObjects(before) && isListOfObjects(after)) {
    const [old, now] = [before ?? [], after ?? []];
    return Array.from({ length: Math.max(old.length, now.length) }, (_, index) =>
      differencesOf(old[index], now[index], `${path}[${index}]`),
    ).flat();
  }
  if (
    isObject(before ?? after) &&
    (before === undefined || isObject(before)) &&
    (after === undefined || isObject(after))
  ) {
    const [old, now] = [before ?? {}, after ?? {}];
    return [...new Set([...Object.keys(old), ...Object.keys(now)])].flatMap((key) =>
      differencesOf(old[key], now[key], path === '' ? key : `${path}.${key}`),
    );
  }
  return [{ path, before, after }];
}

type Fields = Readonly<Record<string, unknown>>;

const isObject = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const isListOfObjects = (value: unknown): value is readonly Fields[] | undefined =>
  value === undefined || (Array.isArray(value) && value.every(isObject));
