/** The search parameters of the audit page. */
import { pageOf, textOf, timeOf, wordOf, type Search } from '../shared/search.js';

const filters = ['resource_type', 'resource_id', 'actor', 'action', 'q'] as const;
type Filter = (typeof filters)[number];

export const auditSearch = (search: Search) => ({
  ...(Object.fromEntries(filters.map((name) => [name, textOf(search, name)])) as {
    [F in Filter]?: string | undefined;
  }),
  from: timeOf(search, 'from'),
  to: timeOf(search, 'to'),
  /** Sign-ins are shown among the others. */
  sign_ins: wordOf(search, 'sign_ins', ['true']),
  /** The entry that is open. */
  entry: textOf(search, 'entry'),
  /** The page of its changes, where it has many. */
  changes: pageOf(search, 'changes'),
  page: pageOf(search),
});

export type AuditSearch = ReturnType<typeof auditSearch>;

const signIns = 'session';

/** The query for an address; it leaves out sign-ins unless the address names them. The caller adds the page. */
export function auditFilters({ sign_ins: wanted, entry: _e, changes: _c, page: _p, ...search }: AuditSearch) {
  const given = Object.entries(search).filter(([, value]) => value !== undefined);
  const named = search.resource_type === signIns || search.action?.startsWith(`${signIns}.`) === true;
  return Object.fromEntries(wanted || named ? given : [...given, ['not_resource_type', signIns]]);
}
