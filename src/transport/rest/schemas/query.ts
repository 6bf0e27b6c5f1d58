/** The schemas of query strings: strict, nothing is clamped. Implements `docs/contract/rest.md#envelope`. */
import { z } from 'zod';
import { timestamp } from '../../../kernel/clock.js';
import { ServiceError } from '../../../kernel/errors.js';
import { limits } from '../../../kernel/limits.js';
import type { ListOf, ListQuery } from '../../../kernel/list.js';
import type { NewestFirst, StepOf } from '../../../projections/port.js';
import { canonical, formedText, text } from './fields.js';
import { expected, readAs } from './validation.js';
import { nextAfter, placeAfter, refusePageBeside, type WalkBound, type PlaceParts } from './walk.js';

/** A decimal integer in a range. */
export function queryInteger(min: number, max: number, description: string) {
  const what = `an integer from ${min} to ${max}, once`;
  return z
    .string({ error: expected(what) })
    .transform(
      readAs(what, (value: string) => {
        const number = /^[0-9]{1,16}$/.test(value) ? Number(value) : Number.NaN;
        return number >= min && number <= max ? number : undefined;
      }),
    )
    .meta({ type: 'integer', minimum: min, maximum: max, description, examples: [min] });
}

export function queryBoolean(description: string) {
  return z
    .enum(['true', 'false'], { error: expected('true or false, once') })
    .transform((value) => value === 'true')
    .meta({ type: 'boolean', enum: [true, false], description, examples: [true] });
}

const rfc3339 = z.iso.datetime({ offset: true });

/** A time, in UTC with milliseconds. */
export const instant = canonical('a time such as 2030-01-31T12:00:00.000Z', (value) => {
  // RFC 3339 allows lower-case letters; zod and `Date.parse` do not accept all of them.
  const parsed = rfc3339.safeParse(value.toUpperCase());
  return parsed.success ? timestamp(Date.parse(parsed.data)) : undefined;
});

/** Free text of a filter. */
export const queryText = text(1, limits.rest.stringChars);

/** A comma-separated list with at least one value. */
export function commaList<const T extends string>(
  what: string,
  read: (value: string) => T | undefined,
  text: z.ZodType<string, string> = queryText,
) {
  const several = `${what}, comma-separated, at most ${limits.rest.listEntries}`;
  return text.transform(
    readAs(several, (list: string) => {
      const values = list.split(',').map(read);
      const known = values.filter((value) => value !== undefined);
      return known.length === values.length && known.length <= limits.rest.listEntries ? known : undefined;
    }),
  );
}

/** Some of these values, comma-separated. */
export const someOf = <const T extends string>(values: readonly T[]) =>
  commaList(values.join(', '), (value) => values.find((one) => one === value), formedText('a text'));

export const page = queryInteger(1, Number.MAX_SAFE_INTEGER, 'Number of the page')
  .optional()
  .meta({ default: 1, examples: [1] });
const pageSize = queryInteger(1, limits.rest.pageSizeMax, 'Items of a page')
  .optional()
  .meta({ default: limits.rest.pageSizeDefault, examples: [20] });
const sorts = ['name', 'created_at', 'updated_at', '-name', '-created_at', '-updated_at'] as const;

/** The order of a list. @param more further orders, each with its reverse */
export function sorting<const T extends readonly string[]>(...more: T) {
  const [first, ...others] = ['name', 'created_at', 'updated_at', ...more.filter((sort) => !sort.startsWith('-'))];
  return z.enum([...sorts, ...more], {
    error: expected(`${[first, ...others.slice(0, -1)].join(', ')} or ${others.at(-1)}, or one of them after "-"`),
  });
}

/** Begins a walk, or continues one. */
export const after = formedText('a place in the list')
  .optional()
  .meta({
    description: 'Walks the list by creation: `start`, then the `next` of the answer before',
    examples: ['start'],
  });

export const paging = { page, page_size: pageSize };

export const listing = {
  ...paging,
  after,
  sort: sorting()
    .optional()
    .meta({ description: 'Order of the items, with `-` backwards; then by id', default: 'name' }),
  q: queryText.optional().meta({ description: 'Case-insensitive substring of the name', examples: ['edge'] }),
};

export function query<S extends z.core.$ZodLooseShape>(shape: S) {
  return z.strictObject(shape);
}

export const noQuery = query({});

/** The page that a query asks for. */
export function pageOfQuery(checked: { readonly page?: number | undefined; readonly page_size?: number | undefined }) {
  return { page: checked.page ?? 1, pageSize: checked.page_size ?? limits.rest.pageSizeDefault };
}

type CheckedList = z.output<z.ZodObject<typeof listing>>;

/**
 * The query of the read models.
 * @throws ServiceError `invalid_request` for a walk that has pages, another order than by creation, or other filters
 */
export function listQuery(checked: CheckedList): ListQuery {
  const { after: from, sort, q } = checked;
  const paged = pageOfQuery(checked);
  if (from === undefined) return { ...paged, sort: sort ?? 'name', q };
  refusePageBeside(checked);
  if (sort !== undefined && sort !== 'created_at' && sort !== '-created_at') {
    throw new ServiceError('invalid_request', 'sort: expected created_at or -created_at beside after');
  }
  const [createdAt, id] = placeAfter(from, boundOf(checked), 2) ?? [];
  const behind = createdAt === undefined || id === undefined ? 'start' : ([createdAt, id] as const);
  return { ...paged, sort: sort ?? 'created_at', q, behind };
}

/** What a walk is bound to. */
const boundOf = ({ after: _after, page: _page, page_size: _size, ...bound }: CheckedNewest): WalkBound => bound;

/** A list in an answer: a page, or a step of a walk. */
export const listAnswer = <T>(checked: CheckedList, { next, ...list }: ListOf<T>) => answerOf(checked, list, next);

/** @param next undefined outside of a walk */
function answerOf<T>(
  checked: Parameters<typeof boundOf>[0],
  { items, total }: Pick<ListOf<T>, 'items' | 'total'>,
  next: PlaceParts | null | undefined,
) {
  const { page: number, pageSize: page_size } = pageOfQuery(checked);
  if (next === undefined) return { items, total, page: number, page_size };
  return { items, total, next: next === null ? null : nextAfter(next, boundOf(checked)), page_size };
}

type CheckedNewest = z.output<z.ZodObject<typeof paging & { after: typeof after }>>;

/** The piece of a list that is always newest first. @throws ServiceError `invalid_request` as `listQuery` */
export function newestFirst(checked: CheckedNewest): NewestFirst {
  const { after: from } = checked;
  const paged = pageOfQuery(checked);
  if (from === undefined) return paged;
  refusePageBeside(checked);
  return { ...paged, behind: placeAfter(from, boundOf(checked), 1)?.[0] ?? 'start' };
}

/** Such a list in an answer. */
export function newestAnswer<T>(checked: CheckedNewest, { next, ...list }: StepOf<T>) {
  const place = typeof next === 'string' ? ([next] as const) : next;
  return answerOf(checked, list, place);
}
