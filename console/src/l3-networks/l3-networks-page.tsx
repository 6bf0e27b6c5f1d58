/** The list of L3 networks. */
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
import { networksQuery } from './l3-networks.js';
import type { L3Network } from './l3-networks.js';
import { text } from './l3-networks.text.js';

const column = columnsOf<L3Network>();
const columns = column.columns([
  column.display({
    id: 'name',
    header: text.name,
    meta: { sort: 'name' },
    cell: ({ row: { original } }) => <ResourceLink type="l3_network" id={original.id} name={original.name} />,
  }),
  column.display({
    id: 'enabled',
    header: text.state,
    cell: ({ row: { original } }) => <EnabledState enabled={original.enabled} />,
  }),
  column.display({
    id: 'members',
    header: text.members,
    meta: { numeric: true },
    cell: ({ row: { original } }) => formatCount(original.members.length),
  }),
  column.display({
    id: 'tunnels',
    header: text.tunnels,
    meta: { numeric: true },
    cell: ({ row: { original } }) => formatCount(original.tunnels.length),
  }),
  column.display({
    id: 'mtu',
    header: text.mtu,
    meta: { numeric: true, minor: true },
    cell: ({ row: { original } }) => text.bytes(formatCount(original.mtu)),
  }),
  column.display({
    id: 'updated',
    header: text.updated,
    meta: { minor: true, sort: 'updated_at' },
    cell: ({ row: { original } }) => <When at={original.updated_at} />,
  }),
]);

export function L3NetworksPage(): ReactNode {
  const search = useSearch({ from: '/l3-networks' });
  const navigate = useNavigate({ from: '/l3-networks' });
  const mayEdit = useMay('operator');
  return (
    <ResourceList
      text={text}
      search={search}
      onSearch={(next, replace) => void navigate({ search: next, replace })}
      query={useQuery(networksQuery(search))}
      columns={columns}
      add={mayEdit && <LinkButton to="/l3-networks/new">{text.add}</LinkButton>}
    />
  );
}
