/**
 * Runs a query in slices and yields to the event loop between them: reads index entries in order when the plan allows
 * it, else scans and sorts. Without transactions, a query may see some of the writes that happen meanwhile.
 */
import { yieldToEventLoop } from '../../../kernel/background.js';
import { compareText } from '../../../kernel/compare-text.js';
import { documentOrder, matchesAll } from '../../field-values.js';
import type { Fields, Filter, Page, Query, StoredDocument } from '../../read-store.js';
import { readCount, readTotal } from './counts.js';
import { decodeDocument } from './document-codec.js';
import { parseKey, type ParsedKey } from './index-keys.js';
import {
  collectionPrefix,
  documentKey,
  idOfKey,
  justAbove,
  within,
  type IndexDatabase,
  type ReadEnvironment,
} from './layout.js';
import { areDisjoint, planQuery, type IndexPlan, type KeyRange, type OpenIndex, type PlanRange } from './query-plan.js';
import { bounds } from '../../bounds.js';
import { tuning } from '../tuning.js';

export interface QueryTarget {
  readonly environment: ReadEnvironment;
  readonly collection: number;
  readonly indexDatabase: IndexDatabase;
  readonly indexes: readonly OpenIndex[];
}

/** Thrown at a key whose order is not exact: the documents must be sorted instead. */
const inexact = Symbol('inexact order');

/** @param first size of the first slice, as more keys may not be needed */
async function* keySlices(
  environment: ReadEnvironment,
  database: 'documents' | IndexDatabase,
  range: KeyRange,
  reverse: boolean,
  first: number = tuning.sliceEntries,
): AsyncGenerator<Buffer[], void, void> {
  let { from, to } = range;
  let limit = Math.min(first, tuning.sliceEntries);
  while (Buffer.compare(from, to) < 0) {
    const keys = environment.keys(database, { from, to, reverse, limit });
    const last = keys.at(-1);
    if (last === undefined) return;
    yield keys;
    if (keys.length < limit) return;
    if (reverse) to = last;
    else from = justAbove(last);
    limit = tuning.sliceEntries;
    await yieldToEventLoop();
  }
}

function hasKeys({ environment, indexDatabase }: QueryTarget, range: KeyRange): boolean {
  return Buffer.compare(range.from, range.to) < 0 && environment.keys(indexDatabase, { ...range, limit: 1 }).length > 0;
}

const sortedUnique = (ids: Iterable<string>): string[] => [...new Set(ids)].sort(compareText);

interface Source {
  /** The next entry; undefined at the end. */
  head: ParsedKey | undefined;
  /** Await it only when it is a promise: most entries are in memory already. */
  next(): Promise<void> | undefined;
}

function createSource(slices: AsyncGenerator<Buffer[], void, void>, parse: (key: Buffer) => ParsedKey): Source {
  let keys: Buffer[] = [];
  let at = 0;
  const take = (): void => {
    const key = keys[at];
    at += 1;
    source.head = key === undefined ? undefined : parse(key);
  };
  const source: Source = {
    head: undefined,
    next() {
      if (at < keys.length) {
        take();
        return undefined;
      }
      return slices.next().then((more) => {
        [keys, at] = [more.done === true ? [] : more.value, 0];
        take();
      });
    },
  };
  return source;
}

/**
 * Yields ids in the plan's order, in slices, and reads only as far as they are taken. Entries with equal values form a
 * run, in which ids ascend in either direction. Several ranges are merged; a document in two of them is in the same run
 * of both.
 */
async function* orderedIds(
  { environment, indexDatabase }: QueryTarget,
  plan: IndexPlan,
  ranges: readonly KeyRange[],
  first: number,
): AsyncGenerator<string[], void, void> {
  const fields = plan.index.fields.length;
  const parse = (key: Buffer): ParsedKey => {
    const parsed = parseKey(key, fields, plan.sortField);
    if (parsed.cut) throw inexact;
    return parsed;
  };
  const slicesOf = (range: KeyRange) => keySlices(environment, indexDatabase, range, plan.descending, first);
  const [single] = ranges;
  // Ascending in an index that ends with the sorted field, the keys are already in order.
  if (ranges.length === 1 && single !== undefined && !plan.descending && plan.sortField === fields - 1) {
    for await (const keys of slicesOf(single)) yield keys.map((key) => parse(key).id);
    return;
  }
  const sources = ranges.map((range) => createSource(slicesOf(range), parse));
  for (const source of sources) await source.next();
  const isBefore = (a: string, b: string): boolean => (plan.descending ? a > b : a < b);
  let ordered: string[] = [];
  for (;;) {
    let value: string | undefined;
    for (const { head } of sources) {
      if (head !== undefined && (value === undefined || isBefore(head.value, value))) value = head.value;
    }
    if (value === undefined) break;
    const run: string[] = [];
    for (const source of sources) {
      while (source.head?.value === value) {
        run.push(source.head.id);
        const loading = source.next();
        if (loading !== undefined) await loading;
      }
    }
    for (const id of run.length > 1 ? sortedUnique(run) : run) ordered.push(id);
    if (ordered.length < Math.min(first, tuning.sliceEntries)) continue;
    yield ordered;
    ordered = [];
  }
  if (ordered.length > 0) yield ordered;
}

/** The ids in the ranges of a plan, in no particular order. */
async function candidates({ environment, indexDatabase }: QueryTarget, plan: IndexPlan): Promise<Set<string>> {
  const ids = new Set<string>();
  for (const range of plan.ranges) {
    for await (const keys of keySlices(environment, indexDatabase, range, false)) {
      for (const key of keys) ids.add(parseKey(key, plan.index.fields.length, -1).id);
    }
  }
  return ids;
}

/** Reads one committed document. */
export function load(target: QueryTarget, id: string): StoredDocument | undefined {
  const value = target.environment.get('documents', documentKey(target.collection, id));
  return value === undefined ? undefined : decodeDocument(id, value);
}

function loadAll(target: QueryTarget, ids: readonly string[]): StoredDocument[] {
  return ids.map((id) => load(target, id)).filter((document) => document !== undefined);
}

/** The documents with these ids in slices, or all documents of the collection by id. */
async function* documentSlices(
  target: QueryTarget,
  ids: readonly string[] | undefined,
): AsyncGenerator<StoredDocument[], void, void> {
  const size = tuning.sliceEntries;
  if (ids !== undefined) {
    for (let start = 0; start < ids.length; start += size) {
      if (start > 0) await yieldToEventLoop();
      yield loadAll(target, ids.slice(start, start + size));
    }
    return;
  }
  const { to, ...start } = within(collectionPrefix(target.collection));
  let { from } = start;
  for (;;) {
    const range = { from, to, limit: size, maxBytes: bounds.itemBytes };
    const slice = target.environment.entries('documents', range);
    const last = slice.at(-1);
    if (last === undefined) return;
    yield slice.map(({ key, value }) => decodeDocument(idOfKey(key), value));
    from = justAbove(last.key);
    await yieldToEventLoop();
  }
}

interface Window {
  take(ids: readonly string[]): void;
  readonly ids: string[];
  /** True when what follows cannot be on the page. */
  passed(): boolean;
  total(): number;
}

/** Collects the ids of one page and counts everything that matches. */
function createWindow(query: Query): Window {
  const skip = query.skip ?? 0;
  const end = skip + query.limit;
  const ids: string[] = [];
  let total = 0;
  return {
    ids,
    passed: () => total >= end,
    total: () => total,
    take(matching) {
      const from = Math.max(0, skip - total);
      const to = Math.max(from, end - total);
      for (const id of matching.slice(from, to)) ids.push(id);
      total += matching.length;
    },
  };
}

/** Keys that are counted before the event loop gets a turn; takes some milliseconds. */
const countedAtOnce = 50_000;

async function countKeys({ environment, indexDatabase }: QueryTarget, range: KeyRange): Promise<number> {
  let count = 0;
  let { from } = range;
  for (;;) {
    const next = environment.keyAt(indexDatabase, { from, to: range.to }, countedAtOnce);
    if (next === undefined) return count + environment.count(indexDatabase, { from, to: range.to });
    count += countedAtOnce;
    from = next;
    await yieldToEventLoop();
  }
}

/** The total of a plan without residual filters, without reading the documents; undefined when it cannot be known. */
async function totalOf(
  target: QueryTarget,
  plan: IndexPlan,
  ranges: readonly PlanRange[],
): Promise<number | undefined> {
  const { index, bound, bounded, sortField } = plan;
  if (bound === 0 && !bounded && sortField === 0) return readTotal(target.environment, target.collection);
  const last = index.fields.length - 1;
  // A document has one entry in a range when no list after the bound fields can add more.
  const single = bound > last || (bound === last && (bounded || sortField >= 0 || index.grouped));
  if (!single || !areDisjoint(ranges)) return undefined;
  let total = 0;
  for (const range of ranges) {
    total +=
      index.grouped && bound === last && !bounded
        ? readCount(target.environment, range.prefix)
        : await countKeys(target, range);
  }
  return total;
}

async function runOrdered(target: QueryTarget, plan: IndexPlan, query: Query): Promise<Page> {
  const ranges = plan.ranges.filter((range) => hasKeys(target, range));
  const settled = plan.residual.length === 0;
  const knownTotal = settled ? await totalOf(target, plan, ranges) : undefined;
  const page = createWindow(query);
  const first = knownTotal === undefined ? tuning.sliceEntries : (query.skip ?? 0) + query.limit + 1;
  for await (const ids of orderedIds(target, plan, ranges, first)) {
    if (settled) page.take(ids);
    else {
      for await (const slice of documentSlices(target, ids)) {
        page.take(slice.filter(({ fields }) => matchesAll(fields, plan.residual)).map(({ id }) => id));
      }
    }
    if (knownTotal !== undefined && page.passed()) break;
  }
  return { items: loadAll(target, page.ids), total: knownTotal ?? page.total() };
}

/** Sorts the matching documents, keeping only the values that the sort needs. */
async function runSorted(
  target: QueryTarget,
  ids: readonly string[] | undefined,
  residual: readonly Filter[],
  query: Query,
): Promise<Page> {
  const sort = query.sort ?? [];
  const matching: { id: string; fields: Fields }[] = [];
  for await (const slice of documentSlices(target, ids)) {
    for (const { id, fields } of slice) {
      if (!matchesAll(fields, residual)) continue;
      matching.push({ id, fields: Object.fromEntries(sort.map(({ field }) => [field, fields[field] ?? null])) });
    }
  }
  matching.sort(documentOrder(sort));
  const page = createWindow(query);
  page.take(matching.map(({ id }) => id));
  return { items: loadAll(target, page.ids), total: page.total() };
}

async function allIds(target: QueryTarget): Promise<string[]> {
  const ids: string[] = [];
  const range = within(collectionPrefix(target.collection));
  for await (const keys of keySlices(target.environment, 'documents', range, false)) {
    for (const key of keys) ids.push(idOfKey(key));
  }
  return ids;
}

/** One page of the matching documents and their total. @throws RangeError on a bad `limit` or `skip` */
export async function runQuery(target: QueryTarget, query: Query): Promise<Page> {
  if (!Number.isInteger(query.limit) || query.limit < 1) throw new RangeError('limit is an integer of at least 1');
  if (!Number.isInteger(query.skip ?? 0) || (query.skip ?? 0) < 0)
    throw new RangeError('skip is an integer of at least 0');
  const where = query.where ?? [];
  const sort = query.sort ?? [];
  const plan = planQuery(target.collection, target.indexes, where, sort);
  if (plan !== undefined && plan.sortField >= 0) {
    try {
      return await runOrdered(target, plan, query);
    } catch (error) {
      if (error !== inexact) throw error;
    }
  }
  const residual = plan?.residual ?? where;
  if (sort.length === 0 && residual.length === 0) {
    const page = createWindow(query);
    page.take(plan === undefined ? await allIds(target) : sortedUnique(await candidates(target, plan)));
    return { items: loadAll(target, page.ids), total: page.total() };
  }
  const ids = plan === undefined ? undefined : [...(await candidates(target, plan))];
  return runSorted(target, ids, residual, query);
}

/** The number of matching documents. */
export async function countMatching(target: QueryTarget, where: readonly Filter[]): Promise<number> {
  const plan = planQuery(target.collection, target.indexes, where, []);
  const residual = plan?.residual ?? where;
  if (residual.length === 0) {
    if (plan === undefined) return readTotal(target.environment, target.collection);
    const ranges = plan.ranges.filter((range) => hasKeys(target, range));
    return (await totalOf(target, plan, ranges)) ?? (await candidates(target, plan)).size;
  }
  let count = 0;
  const ids = plan === undefined ? undefined : [...(await candidates(target, plan))];
  for await (const slice of documentSlices(target, ids)) {
    count += slice.filter(({ fields }) => matchesAll(fields, residual)).length;
  }
  return count;
}
