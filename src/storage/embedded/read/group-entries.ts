/**
 * The index of a collection in LMDB: one entry per document and group, and a counter per group, both written in the
 * document's transaction. Walks entries in slices and yields to the event loop between them; without a transaction, a
 * walk may see some of the writes that happen meanwhile. Implements `read-store.ts` (find, count).
 *
 * `index`: (collection, group, NUL, order, NUL, id) → the time, if the index has times. `counts`: (collection, group).
 * A long or unusual group is hashed.
 */
import { createHash } from 'node:crypto';
import { yieldToEventLoop } from '../../../kernel/background.js';
import { isInTimes, type IndexPlace } from '../../group-index.js';
import type { GroupQuery, GroupRange } from '../../read-store.js';
import type { Range } from '../lmdb.js';
import { tuning } from '../tuning.js';
import { collectionText, idText, justAbove, present, type ReadBatch, type ReadEnvironment } from './layout.js';

/** The key of a group's counter, and the prefix of its entries. Latin-1 text, like all keys here. */
function groupKey(collection: number, group: string): string {
  const name = /^[ -~]{0,200}$/.test(group) ? group : `\x01${createHash('sha256').update(group).digest('base64url')}`;
  return collectionText(collection) + name;
}

/** Counter changes of one operation: key → difference. */
export type Tally = Map<string, number>;

const countOf = (value: Buffer | undefined): number => value?.readDoubleBE(0) ?? 0;

/** Writes the new counts. Call once per operation, after its documents. */
export function applyTally(batch: ReadBatch, tally: Tally): void {
  for (const [key, difference] of tally) {
    if (difference === 0) continue;
    const next = countOf(batch.get('counts', key)) + difference;
    if (next === 0) {
      batch.remove('counts', key);
      continue;
    }
    const value = Buffer.allocUnsafe(8);
    value.writeDoubleBE(next, 0);
    batch.put('counts', key, value);
  }
}

const valueOf = (place: IndexPlace | undefined): Buffer =>
  place?.time === undefined ? present : Buffer.from(place.time, 'latin1');

/** Moves a document from one place in the index to another; undefined means no place. */
export function moveEntries(
  batch: ReadBatch,
  tally: Tally,
  collection: number,
  id: string,
  before: IndexPlace | undefined,
  after: IndexPlace | undefined,
): void {
  const keys = (place: IndexPlace | undefined): Map<string, string> =>
    new Map(
      place?.groups.map((group) => {
        const key = groupKey(collection, group);
        return [`${key}\0${place.order}\0${idText(id)}`, key];
      }),
    );
  const [old, next] = [keys(before), keys(after)];
  for (const [entry, group] of old) {
    if (next.has(entry)) continue;
    batch.remove('index', entry);
    tally.set(group, (tally.get(group) ?? 0) - 1);
  }
  for (const [entry, group] of next) {
    const isNew = !old.has(entry);
    if (isNew || after?.time !== before?.time) batch.put('index', entry, valueOf(after));
    if (isNew) tally.set(group, (tally.get(group) ?? 0) + 1);
  }
}

/** The group to walk, and the groups in which each of its entries is looked up. */
function planOf(environment: ReadEnvironment, collection: number, range: GroupRange) {
  const bySize = [...new Set(range.groups)]
    .map((group) => groupKey(collection, group))
    .map((key) => ({ key, size: countOf(environment.get('counts', key)) }))
    .sort((a, b) => a.size - b.size);
  const [smallest = { key: '', size: 0 }, ...others] = bySize;
  const { key, size } = smallest;
  const bytes = (text: string): Buffer => Buffer.from(text, 'latin1');
  const from = bytes(`${key}\0${range.from ?? ''}`);
  const to = bytes(range.below === undefined ? `${key}\x01` : `${key}\0${range.below}`);
  return { from, to, size, groupBytes: key.length, others: others.map((other) => other.key) };
}

/** The part of an entry after its group: order and id, the same in all groups of a document. */
type Suffix = Buffer;

interface Slot {
  readonly key: Buffer;
  /** Whether its time is in the time range. */
  readonly timely: boolean;
}

/** The entries of a slice, each with whether it is in the time range. */
function slice(environment: ReadEnvironment, { times }: GroupRange, within: Range): readonly Slot[] {
  if (times === undefined) return environment.keys('index', within).map((key) => ({ key, timely: true }));
  return environment
    .entries('index', within)
    .map(({ key, value }) => ({ key, timely: isInTimes(value.toString('latin1'), times) }));
}

/** The entries in a range, in slices. */
async function* walk(
  environment: ReadEnvironment,
  collection: number,
  range: GroupRange,
  direction: GroupQuery['direction'],
  first: number,
): AsyncGenerator<readonly Suffix[], void, void> {
  const plan = planOf(environment, collection, range);
  let { from, to } = plan;
  let limit = Math.min(first, tuning.sliceEntries);
  while (plan.size > 0 && Buffer.compare(from, to) < 0) {
    const slots = slice(environment, range, { from, to, reverse: direction === 'desc', limit });
    const last = slots.at(-1)?.key;
    if (last === undefined) return;
    const suffixes = slots.filter(({ timely }) => timely).map(({ key }) => key.subarray(plan.groupBytes));
    yield plan.others.length === 0
      ? suffixes
      : suffixes.filter((suffix) => {
          const text = suffix.toString('latin1');
          return plan.others.every((other) => environment.get('index', other + text) !== undefined);
        });
    if (slots.length < limit) return;
    if (direction === 'desc') to = last;
    else from = justAbove(last);
    limit = tuning.sliceEntries;
    await yieldToEventLoop();
  }
}

/** The ids of one page. */
export async function findIds(
  environment: ReadEnvironment,
  collection: number,
  query: GroupQuery,
): Promise<readonly string[]> {
  const { skip = 0, limit, direction } = query;
  const ids: string[] = [];
  let passed = 0;
  for await (const suffixes of walk(environment, collection, query, direction, skip + limit)) {
    for (const suffix of suffixes.slice(Math.max(0, skip - passed))) {
      ids.push(suffix.toString('utf8', suffix.indexOf(0, 1) + 1));
      if (ids.length === limit) return ids;
    }
    passed += suffixes.length;
  }
  return ids;
}

/** Keys that the library counts before yielding to the event loop; this takes a few milliseconds. */
const countedAtOnce = 50_000;

/** How many documents are in a range. */
export async function countIn(environment: ReadEnvironment, collection: number, range: GroupRange): Promise<number> {
  const { size, others, to, ...plan } = planOf(environment, collection, range);
  let count = 0;
  if (others.length > 0 || range.times !== undefined) {
    for await (const suffixes of walk(environment, collection, range, 'asc', tuning.sliceEntries)) {
      count += suffixes.length;
    }
    return count;
  }
  if (range.from === undefined && range.below === undefined) return size;
  let { from } = plan;
  while (Buffer.compare(from, to) < 0) {
    const next = environment.keyAt('index', { from, to }, countedAtOnce);
    if (next === undefined) return count + environment.count('index', { from, to });
    count += countedAtOnce;
    from = next;
    await yieldToEventLoop();
  }
  return count;
}
