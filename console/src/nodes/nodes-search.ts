/** The search parameters of the list of nodes: the filters of the API, under the same names. */
import { listOf, listSearch, pageOf, sorts, wordOf, type Search } from '../shared/search.js';

const statuses = ['online', 'offline', 'pending'] as const;
const applyStates = ['applied', 'pushed', 'rejected', 'none'] as const;

export const nodesSearch = (search: Search) => ({
  ...listSearch(search),
  status: wordOf(search, 'status', statuses),
  apply: wordOf(search, 'apply', applyStates),
  listeners: wordOf(search, 'listeners', ['missing']),
  label: listOf(search, 'label'),
  sort: wordOf(search, 'sort', [...sorts, 'status', '-status', 'last_seen_at', '-last_seen_at'] as const),
});

const generationOf = (search: Search, name: string): number | undefined => {
  // A text from an address, a number from a link.
  const value = search[name];
  const generation = value === '' ? NaN : Number(value ?? NaN);
  return Number.isSafeInteger(generation) && generation >= 0 ? generation : undefined;
};

/** The search parameters of a node's configuration. */
export const nodeConfigSearch = (search: Search) => ({
  /** The newest when absent. */
  generation: generationOf(search, 'generation'),
  /** The generation to compare it with. */
  from: generationOf(search, 'from'),
  /** In sentences when absent. */
  as: wordOf(search, 'as', ['raw']),
  page: pageOf(search),
});

export type NodeConfigSearch = ReturnType<typeof nodeConfigSearch>;
