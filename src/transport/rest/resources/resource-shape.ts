/**
 * The fields of a resource, each declared once: its schema and its default. Bodies and answers derive from it; a shape that does
 * not match its definition does not compile. Implements `docs/contract/rest.md#envelope`.
 */
import type { z } from 'zod';
import { jsonEqual, type Json, type JsonObject } from '../../../kernel/json.js';
import { answered } from '../schemas/answered.js';
import { body } from '../schemas/fields.js';
import { managedBy, resourceId, timestamps } from '../schemas/shared-schemas.js';
import { component } from '../schemas/documented.js';

export interface Field<T> {
  /** Its description in the OpenAPI document. */
  readonly about: string;
  readonly example: T;
  /** Checks it in requests; its schema in answers follows. */
  readonly request: z.ZodType<T>;
  /** The default in a create; without one, a create requires the field. */
  readonly initial?: T;
  /** The only kind of body that may set the field; absent: both. */
  readonly only?: 'create' | 'update';
}

/** Every field of a definition, in the order of answers. */
export type Shape<Definition> = { readonly [F in keyof Definition]: Field<Definition[F]> };

/** A body that has passed its schema. */
export type CheckedBody = { readonly [field: string]: unknown };

export type Schemas = { readonly [field: string]: z.ZodType };

const entriesOf = (shape: object): readonly (readonly [string, Field<unknown>])[] =>
  Object.entries(shape) as [string, Field<unknown>][];

/** The strict body of a create. @param extra fields besides the definition */
export function createBody<D>(shape: Shape<D>, extra: Schemas = {}) {
  const fields = entriesOf(shape)
    .filter(([, { only }]) => only !== 'update')
    .map(([name, field]) => [name, described('initial' in field ? field.request.optional() : field.request, field)]);
  return body({ ...(Object.fromEntries(fields) as Schemas), ...extra });
}

/** The fields of a resource in a document of the fleet, including those that only an update can set. */
export function fileBody<D>(shape: Shape<D>) {
  const fields = entriesOf(shape).map(([name, field]) => [
    name,
    'initial' in field ? field.request.optional() : field.request,
  ]);
  return body(Object.fromEntries(fields) as Schemas);
}

/** The fields of a state that differ from their defaults, without the name. */
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
    .map(([name, field]) => [name, described(field.request.optional(), { ...field, initial: undefined })]);
  return body(Object.fromEntries(fields) as Schemas);
}

/** The schema with the description and the example of its field. */
function described(schema: z.ZodType, { about, example, initial }: Field<unknown>): z.ZodType {
  const presumed = initial === undefined || initial === null ? '' : `; default \`${JSON.stringify(initial)}\``;
  return schema.meta({ description: `${about}${presumed}`, examples: [example] });
}

/**
 * The schema of a resource in an answer.
 * @param id its name in the OpenAPI document
 * @param extra fields besides the definition
 */
export function resourceSchema<D, Extra extends z.core.$ZodLooseShape>(
  id: string,
  description: string,
  shape: Shape<D>,
  extra: Extra,
) {
  const fields = entriesOf(shape).map(([name, field]) => [
    name,
    described(answered(field.request), { ...field, initial: undefined }),
  ]);
  return component(id, description, {
    id: resourceId,
    ...(Object.fromEntries(fields) as Schemas),
    ...extra,
    managed_by: managedBy,
    ...timestamps,
  });
}

/** Reads the definition from the body of a create. Fields that a create cannot set come last, as events list them. */
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
