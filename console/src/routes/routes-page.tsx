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

const column = columnsOf<Route>();
const columns = column.columns([
  column.display({
    id: 'name',
    header: text.name,
    meta: { sort: 'name' },
    cell: ({ row: { original } }) => <ResourceLink type="route" id={original.id} name={original.name} />,
  }),
  column.display({
    id: 'host',
    header: text.host,
    cell: ({ row: { original } }) => `${original.host}${original.path_prefix}`,
  }),
  column.display({
    id: 'enabled',
    header: text.state,
    cell: ({ row: { original } }) => <EnabledState enabled={original.enabled} />,
  }),
  column.display({
    id: 'hops',
    header: text.hops,
    meta: { numeric: true, minor: true },
    cell: ({ row: { original } }) => formatCount(original.hops.length),
  }),
  column.accessor('backend', { header: text.backend, meta: { minor: true } }),
  column.display({
    id: 'updated',
    header: text.updated,
    meta: { minor: true, sort: 'updated_at' },
    cell: ({ row: { original } }) => <When at={original.updated_at} />,
  }),
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
