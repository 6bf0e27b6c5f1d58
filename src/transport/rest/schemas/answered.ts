/**
 * The schemas of answers that follow from those of requests: the same fields with the same words, without bounds, checks and
 * other notations of a value. Implements `docs/contract/rest.md#envelope`.
 */
import { z } from 'zod';

/** By the schema of a request, so that a schema with a name has one counterpart. */
const known = new WeakMap<z.ZodType, z.ZodType>();

/** The fields that `presumed` made, with their descriptions in answers. */
const presumedFields = new WeakMap<z.ZodType, string>();

/**
 * A field that a request may leave out and that answers always have.
 * @param absent what holds then, for the document
 */
export function presumed<S extends z.ZodType>(schema: S, about: string, absent: string, ...examples: z.input<S>[]) {
  const words = { description: `${about}; ${absent}`, ...(examples.length === 0 ? {} : { examples }) };
  const field = schema.optional().meta(words);
  presumedFields.set(field, about);
  return field;
}

/** The schema of a value in answers. @param requested checks it in requests; `NewX` becomes `X`, `X` becomes `ShownX` */
export function answered<S extends z.ZodType>(requested: S): z.ZodType<z.output<S>> {
  const made = known.get(requested) ?? documentedLike(requested, counterpartOf(requested));
  known.set(requested, made);
  return made as z.ZodType<z.output<S>>;
}

/** With the words of a schema of requests. */
function documentedLike(requested: z.ZodType, made: z.ZodType): z.ZodType {
  const { id, description, examples, format } = requested.meta() ?? {};
  if (id === undefined && description === undefined) return made;
  return made.meta({
    ...(id !== undefined && { id: id.startsWith('New') ? id.slice('New'.length) : `Shown${id}` }),
    ...(format === 'uuid' && { format }),
    ...(examples !== undefined && { examples }),
    description: presumedFields.get(requested) ?? description,
  });
}

function counterpartOf(requested: z.ZodType): z.ZodType {
  const of = (schema: unknown): z.ZodType => answered(schema as z.ZodType);
  if (requested instanceof z.ZodObject) {
    return z.object(Object.fromEntries(Object.entries(requested.shape).map(([name, field]) => [name, of(field)])));
  }
  if (requested instanceof z.ZodOptional) {
    const inner = of(requested.unwrap());
    return presumedFields.has(requested) ? inner : inner.optional();
  }
  if (requested instanceof z.ZodNullable) return of(requested.unwrap()).nullable();
  if (requested instanceof z.ZodArray) return z.array(of(requested.element));
  if (requested instanceof z.ZodUnion) return z.union(requested.options.map(of));
  if (requested instanceof z.ZodRecord) return z.record(z.string(), of(requested.valueType));
  // The value before it is transformed, since answers are described and not read.
  if (requested instanceof z.ZodPipe) return of(requested.in);
  if (requested instanceof z.ZodEnum) return z.enum(requested.options as [string, ...string[]]);
  if (requested instanceof z.ZodBoolean) return z.boolean();
  if (requested instanceof z.ZodNumber) return z.int();
  if (requested instanceof z.ZodString) return z.string();
  throw new Error('the schema of a request has no counterpart for answers');
}
