/**
 * The fields of a resource, each said once: how a request asks for it, how an answer shows it, what it is when a create
 * leaves it out. Create, update and answer schemas come from it; a field of the definition that is missing, or of another
 * type, does not compile. Implements `docs/contract/rest.md#envelope` (partial updates, every field in every answer).
 */
import { z } from 'zod';
import type { PartialUpdate } from '../../domain/resource/lifecycle.js';
import { body } from './fields.js';
import { timestamps } from './shared-schemas.js';

export interface Field<T> {
  readonly asked: z.ZodType<T>;
  readonly shown: z.ZodType;
  /** Taken when a create leaves the field out; without one, a create requires it. */
  readonly initial?: T;
  /** The only kind of body that may set the field; both when absent. */
  readonly only?: 'create' | 'update';
}

/** Every field of a definition, in the order of answers. */
export type Shape<Definition> = { readonly [F in keyof Definition]: Field<Definition[F]> };

type Schemas = { readonly [field: string]: z.ZodType };

const entriesOf = (shape: object): readonly (readonly [string, Field<unknown>])[] =>
  Object.entries(shape) as [string, Field<unknown>][];

/** The strict body of a create. @param extra fields of the request that are not of the definition */
export function createBody<D>(shape: Shape<D>, extra: Schemas = {}) {
  const asked = entriesOf(shape)
    .filter(([, { only }]) => only !== 'update')
    .map(([name, field]) => [name, 'initial' in field ? field.asked.optional() : field.asked]);
  return body({ ...(Object.fromEntries(asked) as Schemas), ...extra });
}

/** The strict body of a partial update. */
export function updateBody<D>(shape: Shape<D>) {
  const asked = entriesOf(shape)
    .filter(([, { only }]) => only !== 'create')
    .map(([name, field]) => [name, field.asked.optional()]);
  return body(Object.fromEntries(asked) as Schemas);
}

/** The schema of a resource in an answer. @param id its name in the OpenAPI document */
export function shownResource<D, Extra extends z.core.$ZodLooseShape>(id: string, shape: Shape<D>, extra: Extra) {
  return z.object({ ...shownFields(shape), ...extra, ...timestamps }).meta({ id });
}

/** The fields that come first in an answer: the id and those of the definition. */
function shownFields<D>(shape: Shape<D>): Schemas {
  const shown = entriesOf(shape).map(([name, field]) => [name, field.shown]);
  return { id: z.string(), ...(Object.fromEntries(shown) as Schemas) };
}

/** The definition that a checked create body asks for; what it cannot set comes last. */
export function definitionAsked<D>(shape: Shape<D>, asked: { readonly [field: string]: unknown }): D {
  const fields = entriesOf(shape);
  const value = ([name, field]: (typeof fields)[number]) => [name, asked[name] ?? field.initial] as const;
  return Object.fromEntries([
    ...fields.filter(([, { only }]) => only !== 'update').map(value),
    ...fields.filter(([, { only }]) => only === 'update').map(value),
  ]) as D;
}

/** The changes that a checked update body asks for. */
export function updateAsked<D>(asked: object): PartialUpdate<D> {
  return asked as PartialUpdate<D>;
}
