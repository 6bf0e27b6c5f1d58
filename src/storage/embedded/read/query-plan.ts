/**
 * Chooses how a query is answered: which declared index, which ranges of its keys, what is left to compare in the
 * documents, and whether the keys come in the wanted order. Pure; `query-run` executes it.
 */
import type { Filter, Query, Scalar } from '../../read-store.js';
import {
  afterEqual,
  afterScalars,
  encodeScalar,
  firstScalar,
  indexPrefix,
  isCut,
  typeNumber,
  typeString,
} from './index-keys.js';

export interface IndexDefinition {
  readonly number: number;
  readonly fields: readonly string[];
  /** False while older documents are still being added to it. */
  readonly ready: boolean;
}

export interface KeyRange {
  readonly from: Buffer;
  readonly to: Buffer;
}

export interface IndexPlan {
  readonly index: IndexDefinition;
  /** More than one: their entries are merged and may name a document twice. */
  readonly ranges: readonly KeyRange[];
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
  let prefixes: Buffer[] = [indexPrefix(collection, index.number)];
  const settled = new Set<Filter>();
  let bound = 0;
  for (const field of index.fields) {
    const filter = where.find((candidate) => candidate.field === field && boundValues(candidate) !== undefined);
    const values = filter === undefined ? undefined : boundValues(filter);
    if (filter === undefined || values === undefined) break;
    if (prefixes.length * values.length * 2 > rangesMax) break;
    prefixes = prefixes.flatMap((prefix) =>
      values.flatMap((value) => [
        Buffer.concat([prefix, encodeScalar(value)]),
        Buffer.concat([prefix, encodeScalar(value, true)]),
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
  const ranges = prefixes.map((prefix) => {
    if (bounds.length > 0) return rangeWithin(prefix, bounds);
    if (sorts) return { from: Buffer.concat([prefix, firstScalar]), to: Buffer.concat([prefix, afterScalars]) };
    return { from: prefix, to: Buffer.concat([prefix, afterEqual]) };
  });
  return {
    index,
    ranges,
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
    const useful = plan.residual.length < where.length || plan.sortField >= 0;
    if (useful && (best === undefined || score(plan) > score(best))) best = plan;
  }
  return best;
}
