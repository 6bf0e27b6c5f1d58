/** The list of HTTP routes. */
import { useQuery } from '@tanstack/react-query';
import { useNavigate, useSearch } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { useMay } from '../shared/session.js';
import { columnsOf } from '../shared/ui/data-table.js';
import { EnabledState } from '../shared/ui/enabled-state.js';
import { formatCount } from '../shared/ui/format.js';
import { LinkButton } from '../shared/ui/links.js';
import { ResourceLink } from '../shared/ui/resource-link.js';
import { ResourceList } from '../shared/ui/resource-list.js';
import { When } from '../shared/ui/when.js';
import { routesQuery } from './routes.js';
import type { Route } from './routes.js';
import { text } from './routes.text.js';

const columns = columnsOf<Route>([
  [text.name, (row) => <ResourceLink type="route" id={row.id} name={row.name} />, { sort: 'name' }],
  [text.host, (row) => `${row.host}${row.path_prefix}`],
  [text.state, (row) => <EnabledState enabled={row.enabled} />],
  [text.hops, (row) => formatCount(row.hops.length), { numeric: true, minor: true }],
  [text.backend, (row) => row.backend, { minor: true }],
  [text.updated, (row) => <When at={row.updated_at} />, { minor: true, sort: 'updated_at' }],
]);

export function RoutesPage(): ReactNode {
  const search = useSearch({ from: '/routes' });
  const navigate = useNavigate({ from: '/routes' });
  const mayEdit = useMay('operator');
  return (
    <ResourceList
      text={text}
      search={search}
      onSearch={(next, replace) => void navigate({ search: next, replace })}
      query={useQuery(routesQuery(search))}
      columns={columns}
      add={mayEdit && <LinkButton to="/routes/new">{text.add}</LinkButton>}
    />
  );
}
