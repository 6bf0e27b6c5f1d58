/** The list of users, for admins. */
import { useQuery } from '@tanstack/react-query';
import { useNavigate, useSearch } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { columnsOf } from '../shared/ui/data-table.js';
import { none } from '../shared/ui/format.js';
import { LinkButton } from '../shared/ui/links.js';
import { ResourceLink } from '../shared/ui/resource-link.js';
import { ResourceList } from '../shared/ui/resource-list.js';
import { When } from '../shared/ui/when.js';
import { usersQuery } from './users.js';
import type { User } from './users.js';
import { text } from './users.text.js';

const column = columnsOf<User>();
const columns = column.columns([
  column.display({
    id: 'username',
    header: text.username,
    meta: { sort: 'name' },
    cell: ({ row: { original } }) => <ResourceLink type="user" id={original.id} name={original.username} />,
  }),
  column.display({
    id: 'display_name',
    header: text.displayName,
    cell: ({ row: { original } }) => original.display_name ?? none,
  }),
  column.display({ id: 'role', header: text.role, cell: ({ row: { original } }) => text.roles[original.role] }),
  column.display({
    id: 'email',
    header: text.email,
    meta: { minor: true },
    cell: ({ row: { original } }) => original.email ?? none,
  }),
  column.display({
    id: 'created',
    header: text.created,
    meta: { minor: true, sort: 'created_at' },
    cell: ({ row: { original } }) => <When at={original.created_at} />,
  }),
]);

export function UsersPage(): ReactNode {
  const search = useSearch({ from: '/users' });
  const navigate = useNavigate({ from: '/users' });
  return (
    <ResourceList
      text={text}
      search={search}
      onSearch={(next, replace) => void navigate({ search: next, replace })}
      query={useQuery(usersQuery(search))}
      columns={columns}
      add={<LinkButton to="/users/new">{text.add}</LinkButton>}
    />
  );
}
