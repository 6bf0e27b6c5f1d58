/**
 * The newest audit entries of commands, for the dashboard, in memory: loaded once from the read models and continued from the
 * feed, so that no answer reads a store. Implements `docs/contract/rest.md#dashboard`.
 */
import { ServiceError } from '../kernel/errors.js';
import { revertState } from '../projections/models/audit-entry.js';
import type { LoggedEntry, Projections } from '../projections/port.js';
import type { Feed, RecentEntries } from './port.js';
import { tuning } from './tuning.js';

/** The lasting part of an entry; whether it can be reverted depends on later ones. */
interface Entry extends LoggedEntry {
  readonly final: string | null;
}

export interface RecentDeps {
  readonly feed: Pick<Feed, 'onNews' | 'resolve' | 'wait'>;
  readonly projections: Pick<Projections, 'audit' | 'reached' | 'status'>;
  readStoreAway(): boolean;
}

/** Follows the feed from now on. Resolves after the first attempt to load earlier entries. */
export async function keepRecent({ feed, projections, readStoreAway }: RecentDeps): Promise<RecentEntries> {
  const { entries: shown, pages, pageSize } = tuning.recent;
  let all: readonly Entry[] = [];
  /** Entries for everybody. */
  let open: readonly Entry[] = [];
  let loading: Promise<void> | undefined;
  const joined = (newer: readonly Entry[], older: readonly Entry[]): readonly Entry[] =>
    [...newer.filter(({ id }) => older.every((one) => one.id !== id)), ...older].slice(0, shown);

  feed.onNews((news) => {
    if (news.kind !== 'items') return;
    for (const { json, about, final } of news.items) {
      // Only commands have an actor; facts have none.
      if (about.actor === null) continue;
      const entry = { ...(JSON.parse(json) as LoggedEntry), final };
      all = joined([entry], all);
      if (about.readers === 'all') open = joined([entry], open);
    }
  });

  /** @throws ServiceError `unavailable` */
  async function load(): Promise<void> {
    const { position } = await feed.resolve('now');
    await projections.reached(position, tuning.settleMs);
    const [storedAll, storedOpen] = await Promise.all([stored(true), stored(false)]);
    // The read models may be ahead of the feed, which must not bring older entries later.
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

  /** Waits for everything answered before the call, unless the read store is away. */
  async function settled(): Promise<void> {
    if (readStoreAway()) return;
    try {
      await (loading ??= load());
      await feed.resolve('now');
    } catch (error) {
      loading = undefined;
      if (!(error instanceof ServiceError) || error.code !== 'unavailable') throw error;
    }
  }

  await settled();
  return {
    async of({ admin }) {
      await settled();
      const entries = admin ? all : open;
      return entries.map(({ final, ...entry }) => ({
        ...entry,
        ...revertState(final, activeRevert(entries, entry.id)),
      }));
    },
  };
}

/** The newer entry that reverts one and is not itself reverted. */
function activeRevert(newestFirst: readonly Entry[], id: string): string | null {
  const by = newestFirst.find(({ reverts }) => reverts === id);
  return by === undefined || activeRevert(newestFirst, by.id) !== null ? null : by.id;
}

const signIns: ReadonlySet<string> = new Set(['session.sign_in', 'session.sign_in_refused']);
