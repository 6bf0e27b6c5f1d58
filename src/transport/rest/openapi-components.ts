/**
 * Removes the components of an OpenAPI document that nothing refers to: the generator names each schema twice. Pure.
 */

const prefix = '#/components/schemas/';

/** The document with only the schemas that its paths refer to, directly or through one another. */
export function usedComponents<D extends object>(document: D): D {
  const components: unknown = Reflect.get(document, 'components');
  const schemas = record(record(components)['schemas']);
  const used = new Set<string>();
  const unvisited = [...referencesIn(Reflect.get(document, 'paths'))];
  for (let name = unvisited.pop(); name !== undefined; name = unvisited.pop()) {
    if (used.has(name)) continue;
    used.add(name);
    unvisited.push(...referencesIn(schemas[name]));
  }
  const usedSchemas = Object.fromEntries(Object.entries(schemas).filter(([name]) => used.has(name)));
  return { ...document, components: { ...record(components), schemas: usedSchemas } };
}

function record(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? { ...value } : {};
}

function referencesIn(value: unknown): readonly string[] {
  const names: string[] = [];
  JSON.stringify(value ?? null, (key, inner: unknown) => {
    if (key === '$ref' && typeof inner === 'string' && inner.startsWith(prefix)) names.push(inner.slice(prefix.length));
    return inner;
  });
  return names;
}
