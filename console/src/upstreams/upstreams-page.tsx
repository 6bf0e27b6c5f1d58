/** The list of upstreams. */
import { useQuery } from '@tanstack/react-query';
import { useNavigate, useSearch } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { useMay } from '../shared/session.js';
import { columnsOf } from '../shared/ui/data-table.js';
import { EnabledState } from '../shared/ui/enabled-state.js';
import { formatMilliseconds } from '../shared/ui/format.js';
import { LinkButton } from '../shared/ui/links.js';
import { ResourceLink } from '../shared/ui/resource-link.js';
import { ResourceList } from '../shared/ui/resource-list.js';
import { State } from '../shared/ui/state.js';
import type { Mood } from '../shared/ui/state.js';
import { When } from '../shared/ui/when.js';
import { upstreamsQuery } from './upstreams.js';
import type { Upstream } from './upstreams.js';
import { text } from './upstreams.text.js';

const column = columnsOf<Upstream>();
const columns = column.columns([
  column.display({
    id: 'name',
    header: text.name,
    meta: { sort: 'name' },
    cell: ({ row: { original } }) => <ResourceLink type="l4_upstream" {...original} />,
  }),
  column.accessor('endpoint', { header: text.endpoint }),
  column.display({
    id: 'health',
    header: text.healthState,
    cell: ({ row: { original } }) => <HealthOfUpstream health={original.health} />,
  }),
  column.display({
    id: 'enabled',
    header: text.state,
    cell: ({ row: { original } }) => <EnabledState enabled={original.enabled} />,
  }),
  column.display({
    id: 'security',
    header: text.security,
    meta: { minor: true },
    cell: ({ row: { original } }) => securityOf(original),
  }),
  column.display({
    id: 'interval',
    header: text.interval,
    meta: { minor: true, numeric: true },
    cell: ({ row: { original } }) => formatMilliseconds(original.health_check_interval_ms),
  }),
  column.display({
    id: 'updated',
    header: text.updated,
    meta: { minor: true, sort: 'updated_at' },
    cell: ({ row: { original } }) => <When at={original.updated_at} />,
  }),
]);

const healthMoods: Readonly<Record<Upstream['health'], Mood>> = { healthy: 'good', unhealthy: 'bad', unknown: 'idle' };

export function HealthOfUpstream({ health }: Pick<Upstream, 'health'>): ReactNode {
  return <State mood={healthMoods[health]}>{text.healths[health]}</State>;
}

export function securityOf({ tls, reality }: Upstream): string {
  if (tls !== null) return text.tls;
  return reality === null ? text.plain : text.reality;
}

export function UpstreamsPage(): ReactNode {
  const search = useSearch({ from: '/upstreams' });
  const navigate = useNavigate({ from: '/upstreams' });
  const mayEdit = useMay('operator');
  return (
    <ResourceList
      text={text}
      search={search}
      onSearch={(next, replace) => void navigate({ search: next, replace })}
      query={useQuery(upstreamsQuery(search))}
      columns={columns}
      add={mayEdit && <LinkButton to="/upstreams/new">{text.add}</LinkButton>}
    />
  );
}
