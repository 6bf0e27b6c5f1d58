/** What the address of the audit holds. */
import { pageOf, textOf } from '../shared/search.js';
import type { Search } from '../shared/search.js';

const filters = ['resource_type', 'resource_id', 'actor', 'action', 'from', 'to'] as const;
type Filter = (typeof filters)[number];

export const auditSearch = (search: Search) => ({
  ...(Object.fromEntries(filters.map((name) => [name, textOf(search, name)])) as {
    [F in Filter]?: string | undefined;
  }),
  /** The entry that is open. */
  entry: textOf(search, 'entry'),
  page: pageOf(search),
});

export type AuditSearch = ReturnType<typeof auditSearch>;
