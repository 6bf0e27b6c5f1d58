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

const columns = columnsOf<Upstream>([
  [text.name, (row) => <ResourceLink type="l4_upstream" {...row} />, { sort: 'name' }],
  [text.endpoint, (row) => row.endpoint],
  [text.healthState, (row) => <HealthOfUpstream health={row.health} />],
  [text.state, (row) => <EnabledState enabled={row.enabled} />],
  [text.security, (row) => securityOf(row), { minor: true }],
  [text.interval, (row) => formatMilliseconds(row.health_check_interval_ms), { minor: true, numeric: true }],
  [text.updated, (row) => <When at={row.updated_at} />, { minor: true, sort: 'updated_at' }],
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
