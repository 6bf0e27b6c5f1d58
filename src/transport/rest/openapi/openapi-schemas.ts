/**
 * JSON schemas of the zod schemas of routes. A schema with an `id` becomes a component, the others stay inline. Requests are
 * described as they are sent, answers as they are received. Pure. Implements `docs/contract/rest.md#beside-api`.
 */
import { z } from 'zod';

export type JsonSchema = { readonly [keyword: string]: unknown };

type Direction = 'input' | 'output';

const uriOf = (id: string): string => `#/components/schemas/${id}`;
/** An id that no named schema can have. */
const inlineId = (index: number): string => `inline ${index}`;

interface Converted {
  readonly named: ReadonlyMap<string, JsonSchema>;
  of(schema: z.ZodType): JsonSchema;
}

export interface JsonSchemas {
  request(schema: z.ZodType): JsonSchema;
  answer(schema: z.ZodType): JsonSchema;
  /** By id: what requests and answers refer to, and nothing else. Each has an example. */
  readonly components: { readonly [id: string]: JsonSchema };
}

/** In pieces. @throws Error when two different schemas have one id */
export function* jsonSchemas(
  requests: readonly z.ZodType[],
  answers: readonly z.ZodType[],
): Generator<void, JsonSchemas> {
  const input = yield* convert(requests, 'input');
  yield;
  const output = yield* convert(answers, 'output');
  yield;
  for (const [id, schema] of input.named) {
    const shown = output.named.get(id);
    if (shown === undefined || JSON.stringify(shown) === JSON.stringify(schema)) continue;
    throw new Error(`the schema ${id} differs between requests and answers: it needs two names`);
  }
  const bare = Object.fromEntries(
    [...input.named, ...output.named].toSorted(([a], [b]) => (a < b ? -1 : Number(a > b))),
  );
  const components = Object.fromEntries(
    Object.entries(bare).map(([id, schema]) => {
      const example = exampleOf(schema, bare);
      return [id, example === undefined || 'examples' in schema ? schema : { ...schema, examples: [example] }];
    }),
  );
  return { request: input.of, answer: output.of, components };
}

function* convert(roots: readonly z.ZodType[], io: Direction): Generator<void, Converted> {
  const inline = new Map([...new Set(roots)].map((root, index) => [root, inlineId(index)]));
  const registry = z.registry<{ id: string }>();
  // In a list, because a schema that is registered itself is replaced by a reference inside others.
  for (const [root, id] of inline) registry.add(z.array(root), { id });
  const named = new Map<string, z.core.$ZodType>();
  toJson(registry, io, (schema) => {
    const id = z.globalRegistry.get(schema)?.id;
    // Zod itself refuses two schemas with one id.
    if (id !== undefined) named.set(id, schema);
  });
  for (const [id, schema] of named) registry.add(schema, { id });
  yield;
  const converted = toJson(registry, io, () => undefined);
  return {
    named: new Map([...named.keys()].map((id) => [id, bodyOf(converted[id])])),
    of: (schema) => bodyOf(bodyOf(converted[inline.get(schema) ?? ''])['items']),
  };
}

/** @param seen is called with every schema, nested ones too */
function toJson(
  registry: z.core.$ZodRegistry<{ id: string }>,
  io: Direction,
  seen: (schema: z.core.$ZodType) => void,
): { readonly [id: string]: object } {
  return z.toJSONSchema(registry, {
    io,
    metadata: z.globalRegistry,
    target: 'draft-2020-12',
    unrepresentable: 'any',
    uri: uriOf,
    override({ zodSchema, jsonSchema }) {
      seen(zodSchema);
      // Zod leaves them out where a value is transformed, because they could be meant for the result. Here they never are.
      const { examples, default: presumed } = z.globalRegistry.get(zodSchema) ?? {};
      if (Array.isArray(examples)) jsonSchema.examples = examples;
      // A generated client would take any other integer for a 32-bit one, and a number for a 32-bit float.
      if (jsonSchema.type === 'integer' && !((jsonSchema.maximum ?? Infinity) < 2 ** 31)) jsonSchema.format = 'int64';
      if (jsonSchema.type === 'number') jsonSchema.format = 'double';
      if (presumed !== undefined) jsonSchema.default = presumed as z.core.JSONSchema.BaseSchema['default'];
    },
  }).schemas;
}

function bodyOf(converted: unknown): JsonSchema {
  if (typeof converted !== 'object' || converted === null)
    throw new Error('a schema that was not given to be converted');
  const { $schema: _schema, $id: _id, id: _own, ...body } = converted as JsonSchema;
  return body;
}

/**
 * An example of a value that a JSON schema describes, put together from the examples of its parts.
 * @param components the schemas that `$ref` names
 * @returns undefined when a required part has no example
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
  if (typeof $ref === 'string') return exampleOf(components[$ref.slice(uriOf('').length)], components);
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

function keywords(value: unknown): JsonSchema {
  return typeof value === 'object' && value !== null ? (value as JsonSchema) : {};
}
