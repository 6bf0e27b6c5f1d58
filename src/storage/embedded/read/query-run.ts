/**
 * Executes a query in slices that let the event loop turn: index entries in order when the plan gives it, else a scan
 * and a sort. Reads may see writes that happen meanwhile, document by document, as in any store without transactions.
 */
import { yieldToEventLoop } from '../../../kernel/background.js';
import { limits } from '../../../kernel/limits.js';
import { compareText, documentOrder, matchesAll } from '../../field-values.js';
import type { Fields, Filter, Page, Query, StoredDocument } from '../../read-store.js';
import { decodeDocument } from './document-codec.js';
import { parseKey, type ParsedKey } from './index-keys.js';
import { collectionPrefix, documentKey, idOfKey, justAbove, within, type ReadEnvironment } from './layout.js';
import { planQuery, type IndexDefinition, type IndexPlan, type KeyRange } from './query-plan.js';

export interface QueryTarget {
  readonly environment: ReadEnvironment;
  readonly collection: number;
  readonly indexes: readonly IndexDefinition[];
}

/** A key whose order is not exact turned up: the documents must be sorted instead. */
const inexact = Symbol('inexact order');

async function* keySlices(
  environment: ReadEnvironment,
  database: 'documents' | 'indexes',
  range: KeyRange,
  reverse: boolean,
): AsyncGenerator<Buffer[], void, void> {
  let { from, to } = range;
  while (Buffer.compare(from, to) < 0) {
    const keys = environment.keys(database, { from, to, reverse, limit: limits.storage.sliceEntries });
    const last = keys.at(-1);
    if (last === undefined) return;
    yield keys;
    if (keys.length < limits.storage.sliceEntries) return;
    if (reverse) to = last;
    else from = justAbove(last);
    await yieldToEventLoop();
  }
}

function hasKeys(environment: ReadEnvironment, range: KeyRange): boolean {
  return Buffer.compare(range.from, range.to) < 0 && environment.keys('indexes', { ...range, limit: 1 }).length > 0;
}

const sortedUnique = (ids: Iterable<string>): string[] => [...new Set(ids)].sort(compareText);

/**
 * The ids in the plan's order, a slice of the index at a time. Entries that the index holds equal form a run, in which
 * ids ascend whatever the direction.
 */
async function* orderedIds(environment: ReadEnvironment, plan: IndexPlan): AsyncGenerator<string[], void, void> {
  const fields = plan.index.fields.length;
  const ranges = plan.ranges.filter((range) => hasKeys(environment, range));
  const parse = (key: Buffer): ParsedKey => {
    const parsed = parseKey(key, fields, plan.sortField);
    if (parsed.cut) throw inexact;
    return parsed;
  };
  const [single] = ranges;
  if (ranges.length === 1 && single !== undefined) {
    // Upward in an index that ends with the sorted field, the keys are in order as they are.
    const asTheyAre = !plan.descending && plan.sortField === fields - 1;
    let value: string | undefined;
    let run: string[] = [];
    for await (const keys of keySlices(environment, 'indexes', single, plan.descending)) {
      const ordered: string[] = [];
      for (const key of keys) {
        const parsed = parse(key);
        if (asTheyAre) {
          ordered.push(parsed.id);
          continue;
        }
        if (parsed.value !== value) {
          for (const id of run.length > 1 ? sortedUnique(run) : run) ordered.push(id);
          run = [];
        }
        value = parsed.value;
        run.push(parsed.id);
      }
      if (ordered.length > 0) yield ordered;
    }
    if (run.length > 0) yield sortedUnique(run);
    return;
  }
  const byValue = new Map<string, string[]>();
  for (const range of ranges) {
    for await (const keys of keySlices(environment, 'indexes', range, false)) {
      for (const key of keys) {
        const { value, id } = parse(key);
        const run = byValue.get(value);
        if (run === undefined) byValue.set(value, [id]);
        else run.push(id);
      }
    }
  }
  const values = [...byValue.keys()].sort((a, b) => (a < b ? -1 : 1));
  for (const value of plan.descending ? values.reverse() : values) yield sortedUnique(byValue.get(value) ?? []);
}

/** The ids that a plan's ranges name, in no order. */
async function candidates(environment: ReadEnvironment, plan: IndexPlan): Promise<Set<string>> {
  const ids = new Set<string>();
  for (const range of plan.ranges) {
    for await (const keys of keySlices(environment, 'indexes', range, false)) {
      for (const key of keys) ids.add(parseKey(key, plan.index.fields.length, -1).id);
    }
  }
  return ids;
}

function load(target: QueryTarget, id: string): StoredDocument | undefined {
  const value = target.environment.get('documents', documentKey(target.collection, id));
  return value === undefined ? undefined : decodeDocument(id, value);
}

function loadAll(target: QueryTarget, ids: readonly string[]): StoredDocument[] {
  return ids.map((id) => load(target, id)).filter((document) => document !== undefined);
}

/** Slices of the documents with these ids, or of all of the collection in order of id. */
async function* documentSlices(
  target: QueryTarget,
  ids: readonly string[] | undefined,
): AsyncGenerator<StoredDocument[], void, void> {
  const size = limits.storage.sliceEntries;
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
    const range = { from, to, limit: size, maxBytes: limits.storage.batchBytes };
    const slice = target.environment.entries('documents', range);
    const last = slice.at(-1);
    if (last === undefined) return;
    yield slice.map(({ key, value }) => decodeDocument(idOfKey(key), value));
    from = justAbove(last.key);
    await yieldToEventLoop();
  }
}

/** Collects the ids of one page while everything that matches is counted. */
function createWindow(query: Query): { take(ids: readonly string[]): void; ids: string[]; total(): number } {
  const skip = query.skip ?? 0;
  const end = skip + query.limit;
  const ids: string[] = [];
  let total = 0;
  return {
    ids,
    total: () => total,
    take(found) {
      const from = Math.max(0, skip - total);
      const to = Math.max(from, end - total);
      for (const id of found.slice(from, to)) ids.push(id);
      total += found.length;
    },
  };
}

async function runOrdered(target: QueryTarget, plan: IndexPlan, query: Query): Promise<Page> {
  const page = createWindow(query);
  for await (const ids of orderedIds(target.environment, plan)) {
    if (plan.residual.length === 0) {
      page.take(ids);
      continue;
    }
    for await (const slice of documentSlices(target, ids)) {
      page.take(slice.filter(({ fields }) => matchesAll(fields, plan.residual)).map(({ id }) => id));
    }
  }
  return { items: loadAll(target, page.ids), total: page.total() };
}

/** Sorts what matches by the values that the sort needs, not by whole documents. */
async function runSorted(
  target: QueryTarget,
  ids: readonly string[] | undefined,
  residual: readonly Filter[],
  query: Query,
): Promise<Page> {
  const sort = query.sort ?? [];
  const found: { id: string; fields: Fields }[] = [];
  for await (const slice of documentSlices(target, ids)) {
    for (const { id, fields } of slice) {
      if (!matchesAll(fields, residual)) continue;
      found.push({ id, fields: Object.fromEntries(sort.map(({ field }) => [field, fields[field] ?? null])) });
    }
  }
  found.sort(documentOrder(sort));
  const page = createWindow(query);
  page.take(found.map(({ id }) => id));
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

/** One page of the documents that match, with their number. @throws RangeError on a bad `limit` or `skip`. */
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
    page.take(plan === undefined ? await allIds(target) : sortedUnique(await candidates(target.environment, plan)));
    return { items: loadAll(target, page.ids), total: page.total() };
  }
  const ids = plan === undefined ? undefined : [...(await candidates(target.environment, plan))];
  return runSorted(target, ids, residual, query);
}

/** How many documents match. */
export async function countMatching(target: QueryTarget, where: readonly Filter[]): Promise<number> {
  const plan = planQuery(target.collection, target.indexes, where, []);
  const residual = plan?.residual ?? where;
  if (residual.length === 0) {
    if (plan !== undefined) return (await candidates(target.environment, plan)).size;
    return target.environment.count('documents', within(collectionPrefix(target.collection)));
  }
  let count = 0;
  const ids = plan === undefined ? undefined : [...(await candidates(target.environment, plan))];
  for await (const slice of documentSlices(target, ids)) {
    count += slice.filter(({ fields }) => matchesAll(fields, residual)).length;
  }
  return count;
}
