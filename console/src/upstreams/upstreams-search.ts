/** What the address of the list of upstreams holds. */
import { pageOf, textOf, wordOf } from '../shared/search.js';
import type { Search } from '../shared/search.js';

const sorts = ['name', '-name', 'created_at', '-created_at', 'updated_at', '-updated_at'] as const;

export const upstreamsSearch = (search: Search) => ({
  q: textOf(search, 'q'),
  sort: wordOf(search, 'sort', sorts),
  page: pageOf(search),
});

export type UpstreamsSearch = ReturnType<typeof upstreamsSearch>;
