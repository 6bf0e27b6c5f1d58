/** Answers queries in the slow and obvious way, without code of `src/storage`, for comparison with stores. */
import type { FieldValue, Fields, Filter, Query } from '../../../src/storage/read-store.js';

export interface PlainDocument {
  readonly id: string;
  readonly fields: Fields;
}

const codePoints = (text: string): number[] => [...text].map((char) => char.codePointAt(0) ?? 0);

function byCodePoints(a: string, b: string): number {
  const left = codePoints(a);
  const right = codePoints(b);
  for (let index = 0; index < Math.min(left.length, right.length); index += 1) {
    const difference = left[index]! - right[index]!;
    if (difference !== 0) return difference;
  }
  return left.length - right.length;
}

function typeOrder(value: FieldValue | undefined): number {
  if (value === null || value === undefined) return 0;
  if (typeof value === 'boolean') return value ? 2 : 1;
  if (typeof value === 'number') return 3;
  return typeof value === 'string' ? 4 : 5;
}

function order(a: FieldValue | undefined, b: FieldValue | undefined): number {
  if (typeOrder(a) !== typeOrder(b)) return typeOrder(a) - typeOrder(b);
  if (typeof a === 'number' && typeof b === 'number') return a - b;
  if (typeof a === 'string' && typeof b === 'string') return byCodePoints(a, b);
  return 0;
}

function holds(fields: Fields, filter: Filter): boolean {
  const value = fields[filter.field] ?? null;
  const entries = Array.isArray(value) ? value : [value];
  if (filter.op === 'eq') return entries.some((entry) => entry === filter.value);
  if (filter.op === 'in') return entries.some((entry) => filter.value.some((wanted) => entry === wanted));
  if (filter.op === 'contains') return typeof value === 'string' && value.includes(filter.value);
  if (typeof value !== typeof filter.value) return false;
  const compared = order(value, filter.value);
  if (filter.op === 'gt') return compared > 0;
  if (filter.op === 'gte') return compared >= 0;
  return filter.op === 'lt' ? compared < 0 : compared <= 0;
}

export function naiveQuery(documents: readonly PlainDocument[], query: Query): { ids: string[]; total: number } {
  const matching = documents.filter(({ fields }) => (query.where ?? []).every((filter) => holds(fields, filter)));
  matching.sort((a, b) => {
    for (const { field, direction } of query.sort ?? []) {
      const compared = order(a.fields[field], b.fields[field]);
      if (compared !== 0) return direction === 'asc' ? compared : -compared;
    }
    return byCodePoints(a.id, b.id);
  });
  const skip = query.skip ?? 0;
  return { ids: matching.slice(skip, skip + query.limit).map(({ id }) => id), total: matching.length };
}
