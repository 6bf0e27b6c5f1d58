/**
 * Translates a query of the port into a filter and a sort of MongoDB on the shadow keys. The result is exact: nothing
 * is filtered or sorted afterwards. Pure. Implements `read-store.ts` (Filter, Query, IndexSpec).
 */
import type { Document, Sort as MongoSort } from 'mongodb';
import { unreachable } from '../../kernel/errors.js';
import type { Filter, IndexSpec, Query, Scalar } from '../read-store.js';
import type { IndexKey } from './indexes.js';
import { afterStrings, equalityKey, orderKey, otherKey, pathStep, stringType } from './sort-keys.js';

const orderPath = (field: string): string => `order.${pathStep(field)}`;
const equalPath = (field: string): string => `equal.${pathStep(field)}`;

const numbers = { $gt: '3', $lt: stringType } as const;
const strings = { $gte: stringType, $lt: afterStrings } as const;

/** Escapes the special characters of a regular expression, and NUL, which its text cannot contain. */
function escaped(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|]/g, String.raw`\$&`).replaceAll('\0', String.raw`\x00`);
}

type Sort = NonNullable<Query['sort']>;
type Equality = Extract<Filter, { readonly op: 'eq' | 'in' }>;

const isEquality = (filter: Filter): filter is Equality => filter.op === 'eq' || filter.op === 'in';
const valuesOf = (filter: Equality): readonly Scalar[] => (filter.op === 'eq' ? [filter.value] : filter.value);

/** Exact for every value, lists included. */
const equalTo = (filter: Equality): Document => ({
  [equalPath(filter.field)]: { $in: valuesOf(filter).map(equalityKey) },
});

/** Exact where the field is a scalar; matches no other. */
const scalarEqualTo = (filter: Equality): Document => ({
  [orderPath(filter.field)]: { $in: valuesOf(filter).map(orderKey) },
});

function inRange({ field, op, value }: Extract<Filter, { readonly op: 'gt' | 'gte' | 'lt' | 'lte' }>): Document {
  // No value is above, below or equal to NaN.
  if (Number.isNaN(value)) return { [orderPath(field)]: { $in: [] } };
  const all = typeof value === 'number' ? numbers : strings;
  return { [orderPath(field)]: { ...all, [`$${op}`]: orderKey(value) } };
}

function containing(field: string, text: string): Document {
  return { [orderPath(field)]: text === '' ? strings : { $regex: `^${stringType}[\\s\\S]*${escaped(text)}` } };
}

function condition(filter: Filter): Document {
  switch (filter.op) {
    case 'eq':
    case 'in':
      return equalTo(filter);
    case 'gt':
    case 'gte':
    case 'lt':
    case 'lte':
      return inRange(filter);
    case 'contains':
      return containing(filter.field, filter.value);
    default:
      return unreachable(filter);
  }
}

/** Filters by ids. A single id is compared directly, because FerretDB scans for `$in`. */
export function byIds(ids: readonly string[]): { readonly _id: string | { readonly $in: string[] } } {
  const [first] = ids;
  return { _id: first !== undefined && ids.length === 1 ? first : { $in: [...ids] } };
}

/**
 * The index that serves a query best: with the longest run of leading fields that are compared for equality, and after
 * them a field that is ranged, searched or sorted on. Undefined if none begins with a field of the query.
 */
function servingIndex(where: readonly Filter[], sort: Sort, indexes: readonly IndexSpec[]): IndexSpec | undefined {
  const equal = new Set(where.filter(isEquality).map(({ field }) => field));
  const others = new Set([...where.filter((filter) => !isEquality(filter)), ...sort].map(({ field }) => field));
  let best: { readonly index: IndexSpec; readonly score: number } | undefined;
  for (const index of indexes) {
    const unequal = index.fields.findIndex((field) => !equal.has(field));
    const run = unequal < 0 ? index.fields.length : unequal;
    const score = 2 * run + (others.has(index.fields[run] ?? '') ? 1 : 0);
    if (score > (best?.score ?? 0)) best = { index, score };
  }
  return best?.index;
}

/** The equality filters on fields that the serving index holds by their order keys. */
function equalByOrder(where: readonly Filter[], sort: Sort, indexes: readonly IndexSpec[]): ReadonlySet<Filter> {
  const index = servingIndex(where, sort, indexes);
  const ordered = index === undefined ? [] : orderedFields(index);
  return new Set(where.filter((filter) => isEquality(filter) && ordered.includes(filter.field)));
}

const live = (conditions: readonly Document[]): Document =>
  conditions.length === 0 ? { live: true } : { live: true, $and: conditions };

/** Filters the live documents that match. */
export function filterOf(where: readonly Filter[], sort: Sort, indexes: readonly IndexSpec[]): Document {
  const byOrder = equalByOrder(where, sort, indexes);
  return live(
    where.flatMap((filter) => {
      if (!byOrder.has(filter) || !isEquality(filter)) return [condition(filter)];
      // The second is redundant, but it is what the index holds.
      const keys = [...valuesOf(filter).map(orderKey), otherKey];
      return [equalTo(filter), { [orderPath(filter.field)]: { $in: keys } }];
    }),
  );
}

/**
 * Filters whose counts, added up, are the number of live documents that match. The first asks for nothing that the serving
 * index does not hold, so that a server counts in the index and fetches no document; the second finds those that have a
 * list, an object or bytes where the index holds an order key.
 */
export function countFiltersOf(
  where: readonly Filter[],
  sort: Sort,
  indexes: readonly IndexSpec[],
): readonly Document[] {
  const byOrder = [...equalByOrder(where, sort, indexes)].filter(isEquality);
  if (byOrder.length === 0) return [filterOf(where, sort, indexes)];
  const rest = where.filter((filter) => !byOrder.some((one) => one === filter)).map(condition);
  const others = byOrder.map(({ field }): Document => ({ [orderPath(field)]: otherKey }));
  return [
    live([...byOrder.map(scalarEqualTo), ...rest]),
    live([...(others.length === 1 ? others : [{ $or: others }]), ...byOrder.map(equalTo), ...rest]),
  ];
}

/** Ties are broken by id, ascending. Only the first of several sorts by the same field counts. */
export function sortOf(sort: Sort): MongoSort {
  const keys = new Map<string, 1 | -1>();
  for (const { field, direction } of sort) {
    const path = orderPath(field);
    if (!keys.has(path)) keys.set(path, direction === 'asc' ? 1 : -1);
  }
  return keys.set('_id', 1);
}

/** The fields that an index contains by their order keys. */
function orderedFields({ fields }: IndexSpec): readonly string[] {
  return fields.length === 1 ? fields : fields.slice(1);
}

/**
 * The keys of the server's indexes for the declared ones. The first of several fields is indexed by its equality keys,
 * which may be a list: servers allow one list per index. Two indexes for each, because ids ascend in both directions.
 */
export function indexKeys(indexes: readonly IndexSpec[]): readonly IndexKey[] {
  const keys: Map<string, 1 | -1>[] = [
    new Map([
      ['live', 1],
      ['_id', 1],
    ]),
  ];
  for (const index of indexes) {
    const [first] = index.fields;
    const ordered = orderedFields(index).map(orderPath);
    const paths = index.fields.length === 1 || first === undefined ? ordered : [equalPath(first), ...ordered];
    for (const direction of [1, -1] as const) {
      const last = paths.length - 1;
      keys.push(
        new Map([
          ['live', 1],
          ...paths.map((path, at): [string, 1 | -1] => [path, at === last ? direction : 1]),
          ['_id', 1],
        ]),
      );
    }
  }
  return keys;
}
