/** What the address of the list of upstreams holds: the filters of the API by their names. */
import { listSearch, wordOf, type Search } from '../shared/search.js';

export const upstreamsSearch = (search: Search) => ({
  ...listSearch(search),
  health: wordOf(search, 'health', ['healthy', 'unhealthy', 'unknown']),
});
