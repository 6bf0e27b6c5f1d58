/**
 * An example of a value that a JSON schema describes, put together from the examples of its parts. Pure. Implements
 * `docs/contract/rest.md#beside-api`.
 */

type Schema = { readonly [keyword: string]: unknown };

const prefix = '#/components/schemas/';

/**
 * @param components the schemas that `$ref` names
 * @returns undefined when a part without which there is no value has no example
 */
export function exampleOf(schema: unknown, components: { readonly [id: string]: unknown }): unknown {
  const {
    $ref,
    examples,
    const: only,
    enum: values,
    default: presumed,
    anyOf,
    oneOf,
    type,
    properties,
    items,
  } = keywords(schema);
  if (Array.isArray(examples)) return examples[0];
  if (typeof $ref === 'string') return exampleOf(components[$ref.slice(prefix.length)], components);
  if (only !== undefined) return only;
  if (presumed !== undefined) return presumed;
  if (Array.isArray(values)) return values[0];
  for (const alternatives of [anyOf, oneOf]) {
    if (Array.isArray(alternatives)) return exampleOf(alternatives[0], components);
  }
  switch (type) {
    case 'object':
      return Object.fromEntries(
        Object.entries(keywords(properties))
          .map(([name, property]) => [name, exampleOf(property, components)])
          .filter(([, example]) => example !== undefined),
      );
    case 'array': {
      const example = exampleOf(items, components);
      return example === undefined ? [] : [example];
    }
    case 'boolean':
      return true;
    case 'null':
      return null;
    default:
      return undefined;
  }
}

function keywords(value: unknown): Schema {
  return typeof value === 'object' && value !== null ? (value as Schema) : {};
}
