/** What uses a resource: in a cell of a list the first by name, and how many more; elsewhere all of them. */
import { List } from '@mantine/core';
import type { ReactNode } from 'react';
import type { Schemas } from '../api/client.js';
import { formatCount } from './format.js';
import { ResourceLink } from './resource-link.js';
import { text } from './ui.text.js';

/** How many are named. */
const named = 2;

interface UsedByProps {
  readonly users: readonly Schemas['Referrer'][];
  readonly total: number;
}

export function UsedBy({ users, total }: UsedByProps): ReactNode {
  if (total === 0) return text.unused;
  const shown = users.slice(0, named);
  return (
    <>
      {shown.map((user, index) => (
        <span key={`${user.type} ${user.id}`}>
          {index > 0 && ', '}
          <ResourceLink {...user} />
        </span>
      ))}
      {total > shown.length && ` ${text.andMore(formatCount(total - shown.length))}`}
    </>
  );
}

interface ListOfUsersProps extends Pick<UsedByProps, 'users'> {
  /** The way to those that are not listed. */
  readonly more?: ReactNode;
}

export function ListOfUsers({ users, more }: ListOfUsersProps): ReactNode {
  return (
    <List size="sm">
      {users.map((user) => (
        <List.Item key={`${user.type} ${user.id}`}>
          <ResourceLink {...user} />
        </List.Item>
      ))}
      {more && <List.Item>{more}</List.Item>}
    </List>
  );
}
