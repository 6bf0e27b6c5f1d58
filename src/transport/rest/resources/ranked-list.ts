/**
 * Lists in an order that no field of the state has, such as that of reports. Implements `docs/contract/rest.md#envelope`, list
 * queries.
 */
import { compareText } from '../../../kernel/compare-text.js';
import { pieceOf, type ListOf } from '../../../kernel/list.js';
import type { ResourceListQuery, ResourceQueries } from '../../../projections/port.js';

interface Listed {
  readonly id: string;
  readonly created_at: string;
}

const everyItem = { page: 1, pageSize: Number.MAX_SAFE_INTEGER } as const;

/**
 * The page in the order of ranks, then by name, then by id.
 * @param sort backwards if it begins with `-`
 * @param rank undefined for what comes last either way
 */
export function listRanked<S extends Listed>(
  queries: ResourceQueries<S>,
  query: ResourceListQuery<S>,
  sort: string,
  rank: (state: S) => string | undefined,
): ListOf<S> {
  const { items } = queries.list({ ...query, ...everyItem, sort: 'name' });
  const sign = sort.startsWith('-') ? -1 : 1;
  const ranked = items.map((state, place) => ({ state, place, rank: rank(state) }));
  ranked.sort((a, b) => {
    const last = Number(a.rank === undefined) - Number(b.rank === undefined);
    return last || sign * compareText(a.rank ?? '', b.rank ?? '') || a.place - b.place;
  });
  const sorted = ranked.map(({ state }) => state);
  return pieceOf(sorted, query);
}
