/**
 * Equality, order and filters of document fields, in memory: the reference for index scans, and what an adapter falls
 * back to. Not a query planner. Implements `read-store.ts` (Filter, Query.sort).
 */
import { compareText } from '../kernel/compare-text.js';
import type { FieldValue, Fields, Filter, Query, Scalar } from './read-store.js';

/** null 0, false 1, true 2, numbers 3, strings 4, everything else (lists, objects, bytes) 5. */
function rank(value: FieldValue | undefined): number {
  if (value === null || value === undefined) return 0;
  if (value === false) return 1;
  if (value === true) return 2;
  if (typeof value === 'number') return 3;
  return typeof value === 'string' ? 4 : 5;
}

/**
 * Negative, 0 or positive, for sorting. Lists and objects come last and equal each other.
 * @internal exported for tests
 */
export function compareValues(a: FieldValue | undefined, b: FieldValue | undefined): number {
  if (typeof a === 'number' && typeof b === 'number') return a - b;
  if (typeof a === 'string' && typeof b === 'string') return compareText(a, b);
  return rank(a) - rank(b);
}

/** A missing value equals null. */
function equalsOrHolds(value: FieldValue | undefined, expected: Scalar): boolean {
  return Array.isArray(value) ? value.includes(expected) : (value ?? null) === expected;
}

function inOrder(value: FieldValue | undefined, bound: string | number, holds: (order: number) => boolean): boolean {
  if (typeof value === 'number' && typeof bound === 'number') return holds(value - bound);
  if (typeof value === 'string' && typeof bound === 'string') return holds(compareText(value, bound));
  return false;
}

function matches(fields: Fields, filter: Filter): boolean {
  const value = fields[filter.field];
  switch (filter.op) {
    case 'eq':
      return equalsOrHolds(value, filter.value);
    case 'in':
      return filter.value.some((expected) => equalsOrHolds(value, expected));
    case 'gt':
      return inOrder(value, filter.value, (order) => order > 0);
    case 'gte':
      return inOrder(value, filter.value, (order) => order >= 0);
    case 'lt':
      return inOrder(value, filter.value, (order) => order < 0);
    case 'lte':
      return inOrder(value, filter.value, (order) => order <= 0);
    case 'contains':
      return typeof value === 'string' && value.includes(filter.value);
    default: {
      const never: never = filter;
      throw new Error(`unknown filter ${JSON.stringify(never)}`);
    }
  }
}

export function matchesAll(fields: Fields, where: readonly Filter[]): boolean {
  return where.every((filter) => matches(fields, filter));
}

/** Compares two documents by the query's sort, then by id ascending. */
export function documentOrder(
  sort: NonNullable<Query['sort']>,
): (a: { id: string; fields: Fields }, b: { id: string; fields: Fields }) => number {
  return (a, b) => {
    for (const { field, direction } of sort) {
      const order = compareValues(a.fields[field], b.fields[field]);
      if (order !== 0) return direction === 'asc' ? order : -order;
    }
    return compareText(a.id, b.id);
  };
}
