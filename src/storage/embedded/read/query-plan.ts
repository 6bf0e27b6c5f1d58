/**
 * Chooses how a query is answered: which declared index, which ranges of its keys, what is left to compare in the
 * documents, and whether the keys come in the wanted order. Pure; `query-run` executes it.
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
  /** False while older documents are still being added to it. */
  readonly ready: boolean;
}

export interface OpenIndex extends IndexDefinition {
  /** Of its keys, as latin-1 text. */
  readonly prefix: string;
}

export interface KeyRange {
  readonly from: Buffer;
  readonly to: Buffer;
}

/** The keys that begin with one value for each bound field. */
export interface PlanRange extends KeyRange {
  /** Prefix of the index and the bytes of the bound values. */
  readonly prefix: Buffer;
  /** The bytes of the bound values as latin-1 text, and whether they stand for an element of a list. */
  readonly values: readonly { readonly text: string; readonly element: boolean }[];
}

export interface IndexPlan {
  readonly index: IndexDefinition;
  /** More than one: their entries are merged and may name a document twice. */
  readonly ranges: readonly PlanRange[];
  /** The field after the bound ones has bounds. */
  readonly bounded: boolean;
  /** Filters that the ranges do not settle. */
  readonly residual: readonly Filter[];
  /** How many fields the ranges bind to one value. */
  readonly bound: number;
  /** The index field that sorts, right after the bound ones; -1 when the keys are not in the wanted order. */
  readonly sortField: number;
  readonly descending: boolean;
}

/** At most so many ranges in one plan: scalar and list entries of each value, times the values of an `in`. */
const rangesMax = 128;

type Bound = Extract<Filter, { op: 'gt' | 'gte' | 'lt' | 'lte' }>;

const isBound = (filter: Filter): filter is Bound =>
  filter.op === 'gt' || filter.op === 'gte' || filter.op === 'lt' || filter.op === 'lte';

/** The values that an `eq` or a short `in` binds a field to. */
function boundValues(filter: Filter): readonly Scalar[] | undefined {
  if (filter.op === 'eq') return [filter.value];
  return filter.op === 'in' ? [...new Set(filter.value)] : undefined;
}

/** Bounds of one field that all compare with numbers, or all with strings; the rest stays for the documents. */
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

/** The best index for the query, or undefined when a scan of the documents is as good. */
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
    // It lacks the documents that have nothing in a list.
    if (index.grouped && plan.bound < index.fields.length - 1) continue;
    const useful = plan.residual.length < where.length || plan.sortField >= 0;
    if (useful && (best === undefined || score(plan) > score(best))) best = plan;
  }
  return best;
}

/**
 * True when no document has entries in two of the ranges. A field is one scalar or a list: only elements of one list
 * can be several values at once.
 */
export function areDisjoint(ranges: readonly PlanRange[]): boolean {
  const apart = (a: PlanRange, b: PlanRange): boolean =>
    a.values.some(({ text, element }, at) => {
      const other = b.values[at];
      return other !== undefined && other.text !== text && !(element && other.element);
    });
  return ranges.every((range, at) => ranges.slice(at + 1).every((other) => apart(range, other)));
}
