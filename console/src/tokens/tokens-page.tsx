/** The list of API tokens: one's own, and for admins everybody's. */
import { useQuery } from '@tanstack/react-query';
import { useNavigate, useSearch } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { useMay } from '../shared/session.js';
import { columnsOf } from '../shared/ui/data-table.js';
import { LinkButton } from '../shared/ui/links.js';
import { NamedLink } from '../shared/ui/named-link.js';
import { ResourceLink } from '../shared/ui/resource-link.js';
import { ResourceList } from '../shared/ui/resource-list.js';
import { When } from '../shared/ui/when.js';
import { TokenEnd } from './token-end.js';
import { tokensQuery } from './tokens.js';
import type { ApiToken } from './tokens.js';
import { text } from './tokens.text.js';

const columns = columnsOf<ApiToken>([
  [text.name, (row) => <ResourceLink type="api_token" id={row.id} name={row.name} />, { sort: 'name' }],
  [text.role, (row) => text.roles[row.role]],
  [text.ends, (row) => <TokenEnd token={row} />],
  [text.lastUsed, (row) => <When at={row.last_used_at} />, { minor: true }],
  [text.prefix, (row) => <code>{row.prefix}…</code>, { minor: true }],
]);
const ofEverybody = [
  ...columns,
  ...columnsOf<ApiToken>([[text.owner, (row) => <NamedLink type="user" id={row.user_id} />, { minor: true }]]),
];

export function TokensPage(): ReactNode {
  const search = useSearch({ from: '/tokens' });
  const navigate = useNavigate({ from: '/tokens' });
  const seesAll = useMay('admin');
  return (
    <ResourceList
      text={text}
      search={search}
      onSearch={(next, replace) => void navigate({ search: next, replace })}
      query={useQuery(tokensQuery(search))}
      columns={seesAll ? ofEverybody : columns}
      add={<LinkButton to="/tokens/new">{text.add}</LinkButton>}
    />
  );
}
