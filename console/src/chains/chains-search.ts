/** The search parameters of the pages of chains. */
import { listSearch, textOf, wordOf, type Search } from '../shared/search.js';

const statuses = ['draft', 'deployed', 'modified', 'disabled'] as const;
const healths = ['ok', 'degraded', 'down', 'unknown'] as const;

export const chainsSearch = (search: Search) => ({
  ...listSearch(search),
  status: wordOf(search, 'status', statuses),
  health: wordOf(search, 'health', healths),
  /** Only chains with a hop on this node. */
  node_id: textOf(search, 'node_id'),
  /** Only chains that end in this upstream. */
  upstream_id: textOf(search, 'upstream_id'),
});

/** The search parameters of the form: the field that an agent rejected, as the agent names it. */
export const chainFormSearch = (search: Search) => ({ field: textOf(search, 'field') });
