/**
 * The envelope of every answer under `/api`: success, data, error. `kernel/errors.ts` lists the errors, and `errors.ts`
 * catches them. Implements `docs/contract/rest.md#envelope`.
 */
import { z } from 'zod';
import type { ErrorCode } from '../../../kernel/errors.js';
import { limits } from '../../../kernel/limits.js';
import { component, documented } from '../schemas/documented.js';

/** What a schema of an answer shows, read-only. */
export type Shown<S extends z.ZodType> = ReadOnly<z.output<S>>;

type ReadOnly<T> = T extends object ? { readonly [K in keyof T]: ReadOnly<T[K]> } : T;

export function ok<T>(data: T) {
  return { success: true as const, data, error: null };
}

export function failure(code: ErrorCode, sentence: string) {
  return { success: false as const, data: null, error: `${code}: ${sentence}` };
}

type Suffix = 'Answer' | 'Page';
const named: { readonly [suffix in Suffix]: WeakMap<z.ZodType, z.ZodType> } = {
  Answer: new WeakMap(),
  Page: new WeakMap(),
};

/** Names a schema after the named schema inside it, so that all routes share one component. */
function namedAfter<T extends z.ZodType>(inner: z.ZodType, suffix: Suffix, description: string, make: () => T): T {
  const known = named[suffix].get(inner);
  if (known !== undefined) return known as T;
  const id = z.globalRegistry.get(inner)?.id;
  const made = make().meta(id === undefined ? { description } : { id: `${id}${suffix}`, description }) as T;
  named[suffix].set(inner, made);
  return made;
}

function envelope<T extends z.ZodType>(data: T) {
  return namedAfter(data, 'Answer', data.description ?? 'Done', () => successOf(data));
}

function successOf<T extends z.ZodType>(data: T) {
  return z.object({
    success: documented(z.literal(true), 'True for every success'),
    data,
    error: documented(z.null(), 'Null for every success'),
  });
}

export const failureSchema = component('Failure', 'Refused, or failed', {
  success: documented(z.literal(false), 'False for every failure'),
  data: documented(z.null(), 'Null for every failure'),
  error: documented(
    z.string(),
    '`<code>: <sentence>`; the sentence names the field by its JSON path',
    'invalid_request: name: required, expected a string of 1 to 128 characters',
  ),
});

/** The schema of a route's success. Failures follow from the route. */
export function answers<T extends z.ZodType>(data: T) {
  return { 200: envelope(data) };
}

/** The same for a route that creates. */
export function created<T extends z.ZodType>(data: T) {
  return { 201: envelope(data) };
}

export const nothing = z.object({}).meta({ description: 'It is gone', examples: [{}] });

/** The schema of a list that has numbered pages, and may be walked. */
export function pageOf<T extends z.ZodType>(item: T) {
  return namedAfter(item, 'Page', 'One page, or a step of a walk', () =>
    z.object({
      items: documented(z.array(item), 'The items of this page'),
      total: documented(z.int(), 'How many there are on all pages', 1),
      page: documented(z.int().exactOptional(), 'Number of this page, without `after`', 1),
      next: documented(z.string().nullable().exactOptional(), 'What `after` continues with; null at the end', null),
      page_size: documented(z.int(), 'How many items a page has at most', limits.rest.pageSizeDefault),
    }),
  );
}
