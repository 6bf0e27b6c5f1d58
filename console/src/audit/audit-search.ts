/** What the address of the audit holds. */
import { pageOf, textOf, type Search } from '../shared/search.js';

const filters = ['resource_type', 'resource_id', 'actor', 'action', 'from', 'to'] as const;
type Filter = (typeof filters)[number];

export const auditSearch = (search: Search) => ({
  ...(Object.fromEntries(filters.map((name) => [name, textOf(search, name)])) as {
    [F in Filter]?: string | undefined;
  }),
  /** The entry that is open. */
  entry: textOf(search, 'entry'),
  /** The page of its changes, where it has many. */
  changes: pageOf(search, 'changes'),
  page: pageOf(search),
});

export type AuditSearch = ReturnType<typeof auditSearch>;

/** The API's words for what was done to a resource. */
export const verbs = [
  'create',
  'update',
  'delete',
  'deploy',
  'psk',
  'refresh',
  'command',
  'label',
  'revert',
  'apply',
  'stop',
  'resume',
  'sign_in',
  'sign_in_refused',
  'sign_out',
  'confirm',
] as const;
