/** The list of API tokens: one's own, and for admins everybody's. */
import { columnsOf } from '../shared/ui/data-table.js';
import { listPage, nameColumn } from '../shared/ui/list-page.js';
import { NamedLink } from '../shared/ui/named-link.js';
import { When } from '../shared/ui/when.js';
import { TokenEnd } from './token-end.js';
import { tokens, type ApiToken } from './tokens.js';
import { text } from './tokens.text.js';

const columns = columnsOf<ApiToken>([
  nameColumn('api_token'),
  [text.role, (row) => text.roles[row.role]],
  [text.ends, (row) => <TokenEnd token={row} />],
  [text.lastUsed, (row) => <When at={row.last_used_at} />, { minor: true }],
  [text.prefix, (row) => <code>{row.prefix}…</code>, { minor: true }],
]);
const forAdmins = columnsOf<ApiToken>([
  [text.owner, (row) => <NamedLink type="user" id={row.user_id} />, { minor: true }],
]);

export const TokensPage = listPage({ of: tokens, text, columns, forAdmins, role: 'viewer' });
