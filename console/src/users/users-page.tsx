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

const columns = columnsOf<User>([
  [text.username, (row) => <ResourceLink type="user" id={row.id} name={row.username} />, { sort: 'name' }],
  [text.displayName, (row) => row.display_name ?? none],
  [text.role, (row) => text.roles[row.role]],
  [text.email, (row) => row.email ?? none, { minor: true }],
  [text.created, (row) => <When at={row.created_at} />, { minor: true, sort: 'created_at' }],
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
