/**
 * Plans a query: which declared index to use, which ranges of its keys, which filters remain to be checked in the
 * documents, and whether the keys come in the order of the sort. Pure; `query-run.ts` executes the plan.
 */
import type { Filter, Query, Scalar } from '../../read-store.js';
import {
  afterEqual,
  afterScalars,
  elementText,
  encodeScalar,
  firstScalar,
  indexPrefix,
  isCut,
  scalarText,
  typeNumber,
  typeString,
} from './index-keys.js';

export interface IndexDefinition {
  readonly number: number;
  readonly fields: readonly string[];
  /** See `IndexSpec`. */
  readonly grouped: boolean;
  /** False while existing documents are still being added. */
  readonly ready: boolean;
}

export interface OpenIndex extends IndexDefinition {
  /** Prefix of its keys, as latin-1 text. */
  readonly prefix: string;
}

export interface KeyRange {
  readonly from: Buffer;
  readonly to: Buffer;
}

/** The keys that start with one value for each bound field. */
export interface PlanRange extends KeyRange {
  /** Prefix of the index and the bytes of the bound values. */
  readonly prefix: Buffer;
  /** The bound values as latin-1 text, and whether each is an element of a list. */
  readonly values: readonly { readonly text: string; readonly element: boolean }[];
}

export interface IndexPlan {
  readonly index: IndexDefinition;
  /** Entries of several ranges are merged and may name a document twice. */
  readonly ranges: readonly PlanRange[];
  /** True when the field after the bound ones has lower or upper bounds. */
  readonly bounded: boolean;
  /** Filters that the ranges do not cover. */
  readonly residual: readonly Filter[];
  /** How many fields the ranges bind to a value. */
  readonly bound: number;
  /** Position of the index field that sorts, right after the bound ones; -1 when the keys are in another order. */
  readonly sortField: number;
  readonly descending: boolean;
}

/** Bound of the ranges in one plan; each value of an `in` needs one for scalars and one for list elements. */
const rangesMax = 128;

type Bound = Extract<Filter, { op: 'gt' | 'gte' | 'lt' | 'lte' }>;

const isBound = (filter: Filter): filter is Bound =>
  filter.op === 'gt' || filter.op === 'gte' || filter.op === 'lt' || filter.op === 'lte';

/** The values that an `eq` or an `in` binds a field to. */
function boundValues(filter: Filter): readonly Scalar[] | undefined {
  if (filter.op === 'eq') return [filter.value];
  return filter.op === 'in' ? [...new Set(filter.value)] : undefined;
}

/** The bounds of a field that are all numbers or all strings; the others are checked in the documents. */
function usableBounds(filters: readonly Filter[], field: string): Bound[] {
  const bounds = filters.filter(isBound).filter((filter) => filter.field === field);
  const type = typeof bounds[0]?.value;
  return bounds.filter(({ value }) => typeof value === type && !(typeof value === 'string' && isCut(value)));
}

const laterOf = (a: Buffer, b: Buffer): Buffer => (Buffer.compare(a, b) >= 0 ? a : b);
const earlierOf = (a: Buffer, b: Buffer): Buffer => (Buffer.compare(a, b) <= 0 ? a : b);

function rangeWithin(prefix: Buffer, bounds: readonly Bound[]): KeyRange {
  const type = typeof bounds[0]?.value === 'number' ? typeNumber : typeString;
  let from: Buffer = Buffer.concat([prefix, Buffer.from([type])]);
  let to: Buffer = Buffer.concat([prefix, Buffer.from([type + 1])]);
  for (const { op, value } of bounds) {
    const at = Buffer.concat([prefix, encodeScalar(value)]);
    const after = Buffer.concat([at, afterEqual]);
    if (op === 'gte') from = laterOf(from, at);
    else if (op === 'gt') from = laterOf(from, after);
    else if (op === 'lt') to = earlierOf(to, at);
    else to = earlierOf(to, after);
  }
  return { from, to };
}

/** How one index would serve the query. */
function planWith(
  collection: number,
  index: IndexDefinition,
  where: readonly Filter[],
  sort: NonNullable<Query['sort']>,
): IndexPlan {
  let prefixes: readonly Pick<PlanRange, 'values'>[] = [{ values: [] }];
  const settled = new Set<Filter>();
  let bound = 0;
  for (const field of index.fields) {
    const filter = where.find((candidate) => candidate.field === field && boundValues(candidate) !== undefined);
    const values = filter === undefined ? undefined : boundValues(filter);
    if (filter === undefined || values === undefined) break;
    if (prefixes.length * values.length * 2 > rangesMax) break;
    prefixes = prefixes.flatMap((prefix) =>
      values.flatMap((value) => [
        { values: [...prefix.values, { text: scalarText(value), element: false }] },
        { values: [...prefix.values, { text: elementText(value), element: true }] },
      ]),
    );
    settled.add(filter);
    bound += 1;
  }
  const next = index.fields[bound];
  const [sortBy] = sort;
  const sorts = next !== undefined && sort.length === 1 && sortBy?.field === next;
  const bounds = next === undefined ? [] : usableBounds(where, next);
  for (const filter of bounds) settled.add(filter);
  const start = indexPrefix(collection, index.number);
  const ranges = prefixes.map(({ values }): PlanRange => {
    const prefix = Buffer.concat([start, Buffer.from(values.map(({ text }) => text).join(''), 'latin1')]);
    if (bounds.length > 0) return { prefix, values, ...rangeWithin(prefix, bounds) };
    const [from, to] = sorts ? [firstScalar, afterScalars] : [Buffer.alloc(0), afterEqual];
    return { prefix, values, from: Buffer.concat([prefix, from]), to: Buffer.concat([prefix, to]) };
  });
  return {
    index,
    ranges,
    bounded: bounds.length > 0,
    residual: where.filter((filter) => !settled.has(filter)),
    bound,
    sortField: sorts ? bound : -1,
    descending: sorts && sortBy.direction === 'desc',
  };
}

function score(plan: IndexPlan): number {
  return plan.bound * 4 + (plan.sortField >= 0 ? 2 : 0) - plan.residual.length * 3;
}

/** The best index for the query, or undefined when scanning the documents is as good. */
export function planQuery(
  collection: number,
  indexes: readonly IndexDefinition[],
  where: readonly Filter[],
  sort: NonNullable<Query['sort']>,
): IndexPlan | undefined {
  let best: IndexPlan | undefined;
  for (const index of indexes) {
    if (!index.ready) continue;
    const plan = planWith(collection, index, where, sort);
    // A grouped index lacks documents whose list is empty, so its leading fields must be bound.
    if (index.grouped && plan.bound < index.fields.length - 1) continue;
    const useful = plan.residual.length < where.length || plan.sortField >= 0;
    if (useful && (best === undefined || score(plan) > score(best))) best = plan;
  }
  return best;
}

/**
 * True when no document can have entries in two of the ranges. A field is one scalar or one list; only the elements of
 * a list can have several values at once.
 */
export function areDisjoint(ranges: readonly PlanRange[]): boolean {
  const apart = (a: PlanRange, b: PlanRange): boolean =>
    a.values.some(({ text, element }, at) => {
      const other = b.values[at];
      return other !== undefined && other.text !== text && !(element && other.element);
    });
  return ranges.every((range, at) => ranges.slice(at + 1).every((other) => apart(range, other)));
}
