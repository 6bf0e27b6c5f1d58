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

const columns = columnsOf<L3Network>([
  [text.name, (row) => <ResourceLink type="l3_network" id={row.id} name={row.name} />, { sort: 'name' }],
  [text.state, (row) => <EnabledState enabled={row.enabled} />],
  [text.members, (row) => formatCount(row.members.length), { numeric: true }],
  [text.tunnels, (row) => formatCount(row.tunnels.length), { numeric: true }],
  [text.mtu, (row) => text.bytes(formatCount(row.mtu)), { numeric: true, minor: true }],
  [text.updated, (row) => <When at={row.updated_at} />, { minor: true, sort: 'updated_at' }],
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
