/** The search parameters of the list of upstreams: the filters of the API, under the same names. */
import { listSearch, wordOf, type Search } from '../shared/search.js';

export const upstreamsSearch = (search: Search) => ({
  ...listSearch(search),
  health: wordOf(search, 'health', ['healthy', 'unhealthy', 'unknown']),
});
