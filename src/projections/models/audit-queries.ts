/**
 * Queries on the stored audit, for REST and for reverts. The read model finds the entries; the log has their content. Implements
 * `docs/contract/rest.md#audit`.
 */
import { fleetSetType } from '../../domain/fleet-set/declaration.js';
import { describeCommand } from '../../domain/audit/describe.js';
import { yieldToEventLoop } from '../../kernel/background.js';
import { runsOf } from '../../kernel/maps.js';
import type { Collection, GroupRange, StoredDocument } from '../../storage/read-store.js';
import type { EventStore } from '../../storage/event-store.js';
import { loggedEntry, namesShownBy, revertState, withName } from './audit-entry.js';
import { isIndexed, searchAudit } from './audit-search.js';
import { auditGroups, orderOf, type AuditFields } from './audit.js';
import { rangesOfQuery } from './audit-ranges.js';
import { readCommands } from './logged-commands.js';
import { nextOf } from './walk.js';
import { namesAt, type NameFields } from './names.js';
import type { NameLookup, Projections, StoredEntry } from '../port.js';
import { tuning } from '../tuning.js';

type Audit = Collection<AuditFields>;
type EntryDocument = StoredDocument<AuditFields>;

interface Part {
  readonly skip: number;
  readonly limit: number;
}

interface Found {
  readonly found: readonly EntryDocument[];
  readonly total: number;
}

/** A page of the entries in the ranges, newest first, and their total. */
async function pageOf(audit: Audit, ranges: readonly GroupRange[], part: Part): Promise<Found> {
  const found = await entriesIn(audit, ranges, part);
  // A page that is not full is the last one, unless it lies beyond the end.
  const isLast = found.length < part.limit && (found.length > 0 || part.skip === 0);
  return { found, total: isLast ? part.skip + found.length : await countIn(audit, ranges) };
}

/** The entries in any of the ranges after a place, newest first, and how many there are in all. */
async function stepOf(audit: Audit, ranges: readonly GroupRange[], behind: string, limit: number): Promise<Found> {
  const below = behind === 'start' ? undefined : behind;
  const behindIt = ranges.map((range) => ({ ...range, below }));
  const [found, total] = await Promise.all([entriesIn(audit, behindIt, { skip: 0, limit }), countIn(audit, ranges)]);
  return { found, total };
}

async function countIn(audit: Audit, ranges: readonly GroupRange[]): Promise<number> {
  const counts = await Promise.all(ranges.map((range) => audit.count(range)));
  return counts.reduce((sum, count) => sum + count, 0);
}

/**
 * A part of the entries in at most two ranges, newest first. The place where it begins in each of them is found by a binary
 * search, so that a late page costs no more than the first.
 */
async function entriesIn(
  audit: Audit,
  [first, second]: readonly GroupRange[],
  { skip, limit }: Part,
): Promise<readonly EntryDocument[]> {
  if (first === undefined) return [];
  const find = (range: GroupRange, from: number, count: number): Promise<readonly EntryDocument[]> =>
    audit.find({ ...range, direction: 'desc', skip: from, limit: count });
  if (second === undefined) return find(first, skip, limit);
  const before = skip === 0 ? 0 : await countBefore(second, first);
  const both = await Promise.all([find(first, skip - before, limit), find(second, before, limit)]);
  return both
    .flat()
    .sort((a, b) => (a.fields.order < b.fields.order ? 1 : -1))
    .slice(0, limit);

  /** How many entries of a range are among the first `skip` of it and another. */
  async function countBefore(range: GroupRange, other: GroupRange): Promise<number> {
    let [low, high] = [0, Math.min(skip, await audit.count(range))];
    while (low < high) {
      const middle = Math.ceil((low + high) / 2);
      const [[own], [others]] = await Promise.all([find(range, middle - 1, 1), find(other, skip - middle, 1)]);
      const isBefore = own !== undefined && (others === undefined || own.fields.order > others.fields.order);
      if (isBefore) low = middle;
      else high = middle - 1;
    }
    return low;
  }
}

/**
 * For each entry, the revert in effect, or null. A reverted revert is not in effect, so the chain of reverts is followed to its
 * end: the revert is in effect if the number of entries after the first is odd.
 */
async function standingReverts(
  audit: Audit,
  entries: readonly EntryDocument[],
): Promise<(entry: EntryDocument) => string | null> {
  const revertedBy = new Map<string, string | null>(entries.map(({ id, fields }) => [id, fields.reverted_by]));
  for (;;) {
    const missing = [...new Set(revertedBy.values())].filter((id) => id !== null && !revertedBy.has(id)).map(String);
    if (missing.length === 0) break;
    for (const id of missing) revertedBy.set(id, null);
    for (const { id, fields } of await audit.getMany(missing)) revertedBy.set(id, fields.reverted_by);
  }
  return (entry) => {
    let stands = false;
    for (let by = revertedBy.get(entry.id) ?? null; by !== null; by = revertedBy.get(by) ?? null) stands = !stands;
    return stands ? entry.fields.reverted_by : null;
  };
}

/** The entry of a command whose events are no longer in the log. */
function withoutEvents({ id, fields }: EntryDocument, name: string | null): StoredEntry {
  return {
    id,
    at: fields.at,
    actor: { type: fields.actor_type, id: fields.actor_id, name: fields.actor_name },
    // Only sign-ins expire, and programs do not sign in.
    token: null,
    action: fields.action,
    resource: { type: fields.resource_type, id: fields.resource_id, name },
    changes: [],
    changes_total: 0,
    request_id: '',
    position: positionOf(fields),
    revertible: false,
    not_revertible_because: 'its events have expired',
    reverts: fields.reverts,
    reverted_by: null,
  };
}

const positionOf = ({ stream, revision, count }: AuditFields): string => `${stream}@${revision + count - 1}`;

async function entriesOf(
  eventStore: EventStore,
  audit: Audit,
  names: Collection<NameFields>,
  entries: readonly EntryDocument[],
): Promise<readonly StoredEntry[]> {
  const places = entries.map(({ fields }) => fields);
  const [commands, revertOf] = await Promise.all([readCommands(eventStore, places), standingReverts(audit, entries)]);
  const found = commands.map((command) => {
    const described = command === undefined ? null : describeCommand(command);
    return command === undefined || described === null ? undefined : { command, described };
  });
  const nameOf = await namesAt(
    names,
    entries.flatMap(({ fields }, index) => {
      const logged = found[index];
      return logged === undefined ? resourceLookup(fields) : namesShownBy(logged.command, logged.described);
    }),
  );
  return entries.map((document, index) => {
    const logged = found[index];
    if (logged === undefined) return withoutEvents(document, resourceLookup(document.fields).map(nameOf)[0] ?? null);
    const { command, described } = logged;
    return {
      ...loggedEntry(command, described, nameThen(nameOf, document.fields)),
      ...revertState(described.notRevertibleBecause, revertOf(document)),
    };
  });
}

const resourceLookup = ({ resource_type: type, resource_id: id, position }: AuditFields): readonly NameLookup[] =>
  id === null ? [] : [{ type, id, position }];

const nameThen =
  (nameOf: (lookup: NameLookup) => string | null, { position }: Pick<AuditFields, 'position'>) =>
  (type: string, id: string | null): string | null =>
    id === null ? null : nameOf({ type, id, position });

/** @param open returns the collections, or throws `unavailable` while the read models cannot be queried */
export function auditQueries(
  eventStore: EventStore,
  open: () => { readonly audit: Audit; readonly names: Collection<NameFields> },
): Projections['audit'] {
  return {
    async list(query) {
      const { audit, names } = open();
      const { page, pageSize: limit, behind } = query;
      const ranges = rangesOfQuery(query);
      const part = behind === undefined ? { skip: (page - 1) * limit, limit } : { skip: 0, limit: limit + 1, behind };
      const { found, total } = !isIndexed(query)
        ? await searchAudit({ audit, names }, ranges, query, part)
        : behind === undefined
          ? await pageOf(audit, ranges, part)
          : await stepOf(audit, ranges, behind, part.limit);
      const items: StoredEntry[] = [];
      for (const some of runsOf(found.slice(0, limit), ({ fields }) => fields.count, tuning.auditBite)) {
        items.push(...(await entriesOf(eventStore, audit, names, some)));
        await yieldToEventLoop();
      }
      return behind === undefined ? { items, total } : { items, total, next: nextOf(found, limit) };
    },
    async get(id) {
      const { audit, names } = open();
      const document = await audit.get(id);
      if (document === undefined) return undefined;
      const [entry] = await entriesOf(eventStore, audit, names, [document]);
      return entry;
    },
    async changes(id, { page, pageSize }) {
      const { audit, names } = open();
      const document = await audit.get(id);
      if (document === undefined) return undefined;
      const [command] = await readCommands(eventStore, [document.fields]);
      const described = command === undefined ? null : describeCommand(command);
      if (described === null) return { items: [], total: 0 };
      const { resource, changes } = described;
      const shown = changes.slice((page - 1) * pageSize, page * pageSize).map((change) => ({ resource, ...change }));
      const { position } = document.fields;
      const nameOf = await namesAt(
        names,
        shown.flatMap(({ resource: { type, id: of } }) => (of === null ? [] : [{ type, id: of, position }])),
      );
      const then = nameThen(nameOf, document.fields);
      return {
        items: shown.map(({ resource: of, ...change }) => ({ ...change, resource: withName(of, then) })),
        total: changes.length,
      };
    },
  };
}

/**
 * The entries about one resource, and the command of one entry, for reverts.
 * @param open returns the collection, or throws `unavailable` while the read models cannot be queried
 */
export function auditTrail(
  eventStore: EventStore,
  open: () => { readonly audit: Collection<AuditFields> },
): Projections['auditTrail'] {
  return {
    async command(id) {
      const document = await open().audit.get(id);
      if (document === undefined) return undefined;
      const [command] = await readCommands(eventStore, [document.fields]);
      return command?.events[0].metadata.command.id === id ? command : undefined;
    },
    async *about(type, id, behind) {
      const limit = tuning.auditTrailPage;
      const range = { groups: [auditGroups.resource(id)], from: orderOf(behind + 1) };
      for (let below: string | undefined; ;) {
        const items = await open().audit.find({ ...range, below, direction: 'desc', limit });
        for (const { id: entryId, fields } of items) {
          const isOfSet = fields.resource_type === fleetSetType;
          if (fields.resource_type !== type && !isOfSet) continue;
          const { action, actor_type: actor, at, position, count: events, resource_id } = fields;
          yield { id: entryId, action, actor, at, position, events, isAboutSeveral: isOfSet || resource_id === null };
        }
        if (items.length < limit) return;
        below = items.at(-1)?.fields.order;
        await yieldToEventLoop();
      }
    },
  };
}
