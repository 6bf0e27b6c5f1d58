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

const column = columnsOf<ApiToken>();
const columns = column.columns([
  column.display({
    id: 'name',
    header: text.name,
    meta: { sort: 'name' },
    cell: ({ row: { original } }) => <ResourceLink type="api_token" id={original.id} name={original.name} />,
  }),
  column.display({ id: 'role', header: text.role, cell: ({ row: { original } }) => text.roles[original.role] }),
  column.display({ id: 'ends', header: text.ends, cell: ({ row: { original } }) => <TokenEnd token={original} /> }),
  column.display({
    id: 'used',
    header: text.lastUsed,
    meta: { minor: true },
    cell: ({ row: { original } }) => <When at={original.last_used_at} />,
  }),
  column.display({
    id: 'prefix',
    header: text.prefix,
    meta: { minor: true },
    cell: ({ row: { original } }) => <code>{original.prefix}…</code>,
  }),
]);
const ofEverybody = [
  ...columns,
  column.display({
    id: 'owner',
    header: text.owner,
    meta: { minor: true },
    cell: ({ row: { original } }) => <NamedLink type="user" id={original.user_id} />,
  }),
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
