/**
 * The newest entries of commands in memory, those that the dashboard shows: begun once with what the read models have, and
 * carried on with the feed, so that no answer reads a store. Implements `docs/contract/rest.md#dashboard`.
 */
import { ServiceError } from '../kernel/errors.js';
import type { AuditEntry, LoggedEntry, Projections } from '../projections/port.js';
import type { Feed, RecentEntries } from './port.js';
import { tuning } from './tuning.js';

/** What lasts of an entry; whether it can be reverted now follows from the entries after it. */
interface Entry extends LoggedEntry {
  readonly final: string | null;
}

export interface RecentDeps {
  readonly feed: Pick<Feed, 'onNews' | 'resolve' | 'wait'>;
  readonly projections: Pick<Projections, 'audit' | 'reached' | 'status'>;
  readStoreAway(): boolean;
}

/** Keeps them from now on, and resolves when it has begun with those before, or has failed to once. */
export async function keepRecent({ feed, projections, readStoreAway }: RecentDeps): Promise<RecentEntries> {
  const { entries: shown, pages, pageSize } = tuning.recent;
  let all: readonly Entry[] = [];
  /** Those that everybody may see. */
  let open: readonly Entry[] = [];
  let begun: Promise<void> | undefined;
  const joined = (newer: readonly Entry[], older: readonly Entry[]): readonly Entry[] =>
    [...newer.filter(({ id }) => older.every((one) => one.id !== id)), ...older].slice(0, shown);

  feed.onNews((news) => {
    if (news.kind !== 'items') return;
    for (const { json, about, final } of news.items) {
      // Only commands have an actor: sign-ins and what agents did have none.
      if (about.actor === null) continue;
      const entry = { ...(JSON.parse(json) as LoggedEntry), final };
      all = joined([entry], all);
      if (about.readers === 'all') open = joined([entry], open);
    }
  });

  /** @throws ServiceError `unavailable` */
  async function begin(): Promise<void> {
    const { position } = await feed.resolve('now');
    await projections.reached(position, tuning.settleMs);
    const [storedAll, storedOpen] = await Promise.all([stored(true), stored(false)]);
    // The read models may be ahead: what they have is told first, so that only newer entries are told from then on.
    await feed.wait({ position: projections.status().position - 1, cursor: null }, tuning.settleMs);
    all = joined(all, storedAll);
    open = joined(open, storedOpen);
  }

  async function stored(includeAccounts: boolean): Promise<readonly Entry[]> {
    const found: Entry[] = [];
    for (let page = 1; page <= pages && found.length < shown; page += 1) {
      const { items } = await projections.audit.list({ page, pageSize, includeAccounts });
      for (const { revertible: _, reverted_by, not_revertible_because, ...entry } of items) {
        if (signIns.has(entry.action)) continue;
        found.push({ ...entry, final: reverted_by === null ? not_revertible_because : null });
      }
      if (items.length < pageSize) break;
    }
    return found;
  }

  /** Waits until what was answered before the call is told. While the read store is away, nobody waits for it. */
  async function settled(): Promise<void> {
    if (readStoreAway()) return;
    try {
      await (begun ??= begin());
      await feed.resolve('now');
    } catch (error) {
      begun = undefined;
      if (!(error instanceof ServiceError) || error.code !== 'unavailable') throw error;
    }
  }

  await settled();
  return {
    async of({ admin }) {
      await settled();
      const entries = admin ? all : open;
      return entries.map(({ final, ...entry }) => {
        const reverted_by = standingRevert(entries, entry.id);
        const because = final ?? (reverted_by === null ? null : `it was reverted by the entry ${reverted_by}`);
        return { ...entry, revertible: because === null, not_revertible_because: because, reverted_by };
      });
    },
  };
}

/** The entry that undoes one and is not undone in turn. What undoes an entry is newer, and therefore among them. */
function standingRevert(newestFirst: readonly Entry[], id: string): AuditEntry['id'] | null {
  const by = newestFirst.find(({ reverts }) => reverts === id);
  return by === undefined || standingRevert(newestFirst, by.id) !== null ? null : by.id;
}

const signIns: ReadonlySet<string> = new Set(['session.sign_in', 'session.sign_in_refused']);
