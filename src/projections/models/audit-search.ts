/**
 * Audit queries that the index alone cannot answer: for several types, for all but some types, or by name. Entries are
 * read newest first, in slices, and looked at one by one. Implements `docs/contract/rest.md#audit`, `not_resource_type`
 * and `q`.
 */
import { yieldToEventLoop } from '../../kernel/background.js';
import { nameKey } from '../../domain/resource/meta.js';
import type { Collection, GroupRange, StoredDocument } from '../../storage/read-store.js';
import type { AuditQuery } from '../port.js';
import { tuning } from '../tuning.js';
import { auditGroups, closedTypes, type AuditFields } from './audit.js';
import type { NameFields } from './names.js';

type Audit = Collection<AuditFields>;
type EntryDocument = StoredDocument<AuditFields>;
type Wanted = Pick<AuditQuery, 'resourceTypes' | 'notResourceTypes' | 'q'>;

/** Whether the index alone answers a query. */
export const isIndexed = ({ resourceTypes = [], notResourceTypes = [], q }: Wanted): boolean =>
  resourceTypes.length <= 1 && notResourceTypes.length === 0 && q === undefined;

interface Part {
  readonly skip: number;
  readonly limit: number;
  /** In a walk: the place of the entry that was shown last, or `start`. */
  readonly behind?: string | undefined;
}

/** @param ranges those of each type, if types are wanted: an entry may be in several */
export async function searchAudit(
  { audit, names }: { readonly audit: Audit; readonly names: Collection<NameFields> },
  ranges: readonly GroupRange[],
  wanted: Wanted,
  { skip, limit, behind = 'start' }: Part,
): Promise<{ readonly found: readonly EntryDocument[]; readonly total: number }> {
  const isNamed = wanted.q === undefined ? undefined : await namesWith(names, wanted.q);
  const leftOut = (wanted.notResourceTypes ?? []).map(auditGroups.type);
  const counted = await countOf(audit, ranges, wanted);
  if (counted !== undefined && skip >= counted) return { found: [], total: counted };
  const found: EntryDocument[] = [];
  let [total, passed] = [0, 0];
  const from = counted === undefined || behind === 'start' ? undefined : behind;
  for await (const entries of newestOf(audit, ranges, from)) {
    for (const entry of entries) {
      if (leftOut.some((group) => entry.fields.groups.includes(group)) || isNamed?.(entry.fields) === false) continue;
      total += 1;
      if (behind !== 'start' && entry.fields.order >= behind) continue;
      passed += 1;
      if (passed > skip && found.length < limit) found.push(entry);
    }
    if (counted !== undefined && found.length === limit) break;
  }
  return { found, total: counted ?? total };
}

/** How many entries a query selects; undefined if the index cannot tell, as for names and several types. */
async function countOf(audit: Audit, ranges: readonly GroupRange[], wanted: Wanted): Promise<number | undefined> {
  const { resourceTypes = [], notResourceTypes = [], q } = wanted;
  const shared = (types: readonly string[]): number => types.filter((type) => !closedTypes.has(type)).length;
  const isSeveral = shared(resourceTypes) > 1 || shared(notResourceTypes) > 1;
  if (q !== undefined || isSeveral || (resourceTypes.length > 0 && notResourceTypes.length > 0)) return undefined;
  const openAll = auditGroups.open(auditGroups.all);
  const without = ranges.flatMap((range) =>
    notResourceTypes
      .filter((type) => !(closedTypes.has(type) && range.groups.includes(openAll)))
      .map((type) => {
        const others = range.groups.filter((group) => group !== auditGroups.all && group !== openAll);
        return audit.count({ ...range, groups: [...others, auditGroups.type(type)] });
      }),
  );
  const [all, less] = await Promise.all([Promise.all(ranges.map((range) => audit.count(range))), Promise.all(without)]);
  const sum = (counts: readonly number[]): number => counts.reduce((total, count) => total + count, 0);
  return sum(all) - sum(less);
}

/** The entries in any of the ranges, each once, newest first, in slices. */
async function* newestOf(
  audit: Audit,
  ranges: readonly GroupRange[],
  below: string | undefined,
): AsyncGenerator<readonly EntryDocument[], void> {
  const heads = ranges.map((range) => ({ range: { ...range, below }, waiting: [] as EntryDocument[], isAtEnd: false }));
  for (let last = ''; ;) {
    for (const head of heads) {
      if (head.waiting.length > 0 || head.isAtEnd) continue;
      const some = await audit.find({ ...head.range, direction: 'desc', limit: tuning.scanDocuments });
      head.waiting = some.toReversed();
      head.isAtEnd = some.length < tuning.scanDocuments;
      head.range = { ...head.range, below: some.at(-1)?.fields.order };
    }
    const slice: EntryDocument[] = [];
    while (heads.every(({ waiting, isAtEnd }) => waiting.length > 0 || isAtEnd)) {
      const newest = heads.reduce((a, b) => (orderOf(b.waiting) > orderOf(a.waiting) ? b : a), heads[0] ?? nothing);
      const entry = newest.waiting.pop();
      if (entry === undefined) break;
      if (entry.id !== last) slice.push(entry);
      last = entry.id;
    }
    if (slice.length === 0 && heads.every(({ waiting, isAtEnd }) => waiting.length === 0 && isAtEnd)) return;
    yield slice;
    await yieldToEventLoop();
  }
}

const nothing = { waiting: [] as EntryDocument[] };
const orderOf = (waiting: readonly EntryDocument[]): string => waiting.at(-1)?.fields.order ?? '';

/** @returns a function: whether a name that the entry's resource, another that it changed, or its actor had then contains `q` */
async function namesWith(names: Collection<NameFields>, q: string): Promise<(entry: AuditFields) => boolean> {
  const searched = nameKey(q);
  const holds = (name: string | null | undefined): boolean => nameKey(name ?? '').includes(searched);
  /** By the group of the entries about the resource. */
  const found = new Map<string, NameFields['names']>();
  for (let after: string | undefined; ;) {
    const some = await names.list(after, tuning.scanDocuments);
    for (const { id, fields } of some) {
      const isFound = fields.names.some(({ name }) => holds(name));
      if (isFound) found.set(auditGroups.resource(id.slice(id.indexOf('/') + 1)), fields.names);
    }
    if (some.length < tuning.scanDocuments) break;
    after = some.at(-1)?.id;
  }
  const heldThen = (group: string, position: number): boolean => {
    const all = found.get(group);
    return all !== undefined && holds(all.findLast((name) => name.position <= position)?.name);
  };
  return ({ resource_name, groups, actor_type, actor_id, actor_name, position }) =>
    holds(actor_name) ||
    holds(resource_name) ||
    (actor_type === 'agent' && actor_id !== null && heldThen(auditGroups.resource(actor_id), position)) ||
    groups.some((group) => heldThen(group, position));
}
