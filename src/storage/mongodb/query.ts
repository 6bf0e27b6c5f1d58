/**
 * Translates a query of the port into a filter and a sort of MongoDB on the shadow keys. The result is exact: nothing
 * is filtered or sorted afterwards. Pure. Implements `read-store.ts` (Filter, Query, IndexSpec).
 */
import type { Document, Sort } from 'mongodb';
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

function equalTo(field: string, values: readonly Scalar[], ordered: ReadonlySet<string>): readonly Document[] {
  const exact = { [equalPath(field)]: { $in: values.map(equalityKey) } };
  if (!ordered.has(field)) return [exact];
  // Redundant, but the index contains this field by its order key.
  return [exact, { [orderPath(field)]: { $in: [...values.map(orderKey), otherKey] } }];
}

function inRange({ field, op, value }: Extract<Filter, { readonly op: 'gt' | 'gte' | 'lt' | 'lte' }>): Document {
  // No value is above, below or equal to NaN.
  if (Number.isNaN(value)) return { [orderPath(field)]: { $in: [] } };
  const all = typeof value === 'number' ? numbers : strings;
  return { [orderPath(field)]: { ...all, [`$${op}`]: orderKey(value) } };
}

function containing(field: string, text: string): Document {
  return { [orderPath(field)]: text === '' ? strings : { $regex: `^${stringType}[\\s\\S]*${escaped(text)}` } };
}

function conditions(filter: Filter, ordered: ReadonlySet<string>): readonly Document[] {
  switch (filter.op) {
    case 'eq':
      return equalTo(filter.field, [filter.value], ordered);
    case 'in':
      return equalTo(filter.field, filter.value, ordered);
    case 'gt':
    case 'gte':
    case 'lt':
    case 'lte':
      return [inRange(filter)];
    case 'contains':
      return [containing(filter.field, filter.value)];
    default:
      return unreachable(filter);
  }
}

/** Filters by ids. A single id is compared directly, because FerretDB scans for `$in`. */
export function byIds(ids: readonly string[]): { readonly _id: string | { readonly $in: string[] } } {
  const [first] = ids;
  return { _id: first !== undefined && ids.length === 1 ? first : { $in: [...ids] } };
}

/** Filters the live documents that match. */
export function filterOf(where: readonly Filter[], indexes: readonly IndexSpec[]): Document {
  const ordered = new Set(indexes.flatMap(orderedFields));
  const all = where.flatMap((filter) => conditions(filter, ordered));
  return all.length === 0 ? { live: true } : { live: true, $and: all };
}

/** Ties are broken by id, ascending. Only the first of several sorts by the same field counts. */
export function sortOf(sort: NonNullable<Query['sort']>): Sort {
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
