/**
 * The fields of a resource, each declared once: its schema in a request, its schema in a response, its value when a
 * create leaves it out. The schemas of bodies and answers derive from it. A field of the definition that is missing or
 * has another type does not compile. Implements `docs/contract/rest.md#envelope`.
 */
import { z } from 'zod';
import type { Json, JsonObject } from '../../../kernel/json.js';
import { jsonEqual } from '../../../kernel/json.js';
import { body } from '../schemas/fields.js';
import { managedBy, resourceId, timestamps } from '../schemas/shared-schemas.js';

export interface Field<T> {
  /** The meaning of the field, for the OpenAPI document. */
  readonly about: string;
  /** Its schema in answers. */
  readonly example: T;
  readonly request: z.ZodType<T>;
  readonly response: z.ZodType;
  /** The value when a create leaves the field out; without one, a create requires the field. */
  readonly initial?: T;
  /** The only kind of body that may set the field; both when absent. */
  readonly only?: 'create' | 'update';
}

/** Every field of a definition, as answers order them. */
export type Shape<Definition> = { readonly [F in keyof Definition]: Field<Definition[F]> };

/** A body that has passed its schema. */
export type CheckedBody = { readonly [field: string]: unknown };

export type Schemas = { readonly [field: string]: z.ZodType };

const entriesOf = (shape: object): readonly (readonly [string, Field<unknown>])[] =>
  Object.entries(shape) as [string, Field<unknown>][];

/** The strict body of a create. @param extra fields of the request that are not part of the definition */
export function createBody<D>(shape: Shape<D>, extra: Schemas = {}) {
  const fields = entriesOf(shape)
    .filter(([, { only }]) => only !== 'update')
    .map(([name, field]) => [
      name,
      'initial' in field ? said(field.request.optional(), field) : said(field.request, field),
    ]);
  return body({ ...(Object.fromEntries(fields) as Schemas), ...extra });
}

/** What a document of the fleet says of one: the fields of a create, and those that only an update can set. */
export function fileBody<D>(shape: Shape<D>) {
  const fields = entriesOf(shape).map(([name, field]) => [
    name,
    'initial' in field ? field.request.optional() : field.request,
  ]);
  return body(Object.fromEntries(fields) as Schemas);
}

/** The fields of a state that differ from what a create fills in, without the name. */
export function ownFields<D>(shape: Shape<D>, state: object): JsonObject {
  const fields: Record<string, Json> = {};
  for (const [name, field] of entriesOf(shape)) {
    const value = (Reflect.get(state, name) as Json | undefined) ?? null;
    const presumed = 'initial' in field && jsonEqual(value, field.initial as Json);
    if (name !== 'name' && !presumed) fields[name] = value;
  }
  return fields;
}

/** The strict body of a partial update. */
export function updateBody<D>(shape: Shape<D>) {
  const fields = entriesOf(shape)
    .filter(([, { only }]) => only !== 'create')
    .map(([name, field]) => [name, said(field.request.optional(), { ...field, initial: undefined })]);
  return body(Object.fromEntries(fields) as Schemas);
}

/** The schema with the words and the example of its field. */
function said(schema: z.ZodType, { about, example, initial }: Field<unknown>): z.ZodType {
  const presumed = initial === undefined || initial === null ? '' : `; default \`${JSON.stringify(initial)}\``;
  return schema.meta({ description: `${about}${presumed}`, examples: [example] });
}

/**
 * The schema of a resource in an answer.
 * @param id its name in the OpenAPI document
 * @param description what such a resource is
 * @param extra fields beside the definition
 */
export function resourceSchema<D, Extra extends z.core.$ZodLooseShape>(
  id: string,
  description: string,
  shape: Shape<D>,
  extra: Extra,
) {
  const fields = entriesOf(shape).map(([name, field]) => [
    name,
    said(field.response, { ...field, initial: undefined }),
  ]);
  return z
    .object({
      id: resourceId,
      ...(Object.fromEntries(fields) as Schemas),
      ...extra,
      managed_by: managedBy,
      ...timestamps,
    })
    .meta({ id, description });
}

/**
 * Reads the definition in the body of a create. Fields that a create cannot set come last: events list them in this order.
 */
export function definitionReader<D>(shape: Shape<D>): (checked: CheckedBody) => D {
  const fields = entriesOf(shape);
  const ordered = [
    ...fields.filter(([, { only }]) => only !== 'update'),
    ...fields.filter(([, { only }]) => only === 'update'),
  ];
  return (checked) => {
    const definition: Record<string, unknown> = {};
    for (const [name, { initial }] of ordered) definition[name] = checked[name] ?? initial;
    return definition as D;
  };
}
