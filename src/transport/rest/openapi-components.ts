/** Leaves out of an OpenAPI document the components that nothing refers to: the generator names each schema twice. Pure. */

const prefix = '#/components/schemas/';

/** The document with only the schemas that its paths need, directly or through one another. */
export function usedComponents<D extends object>(document: D): D {
  const components: unknown = Reflect.get(document, 'components');
  const schemas = record(record(components)['schemas']);
  const used = new Set<string>();
  const waiting = [...referencesIn(Reflect.get(document, 'paths'))];
  for (let name = waiting.pop(); name !== undefined; name = waiting.pop()) {
    if (used.has(name)) continue;
    used.add(name);
    waiting.push(...referencesIn(schemas[name]));
  }
  const kept = Object.fromEntries(Object.entries(schemas).filter(([name]) => used.has(name)));
  return { ...document, components: { ...record(components), schemas: kept } };
}

function record(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? { ...value } : {};
}

function referencesIn(value: unknown): readonly string[] {
  const found: string[] = [];
  JSON.stringify(value ?? null, (key, inner: unknown) => {
    if (key === '$ref' && typeof inner === 'string' && inner.startsWith(prefix)) found.push(inner.slice(prefix.length));
    return inner;
  });
  return found;
}
