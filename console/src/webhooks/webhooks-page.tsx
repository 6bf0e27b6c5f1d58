/** The list of webhooks. */
import { useQuery } from '@tanstack/react-query';
import { useNavigate, useSearch } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { columnsOf } from '../shared/ui/data-table.js';
import { none } from '../shared/ui/format.js';
import { LinkButton } from '../shared/ui/links.js';
import { ResourceLink } from '../shared/ui/resource-link.js';
import { ResourceList } from '../shared/ui/resource-list.js';
import { When } from '../shared/ui/when.js';
import { Lag, Outcome, WebhookState } from './webhook-state.js';
import { webhooksQuery } from './webhooks.js';
import type { Webhook } from './webhooks.js';
import { text } from './webhooks.text.js';

const column = columnsOf<Webhook>();
const columns = column.columns([
  column.display({
    id: 'name',
    header: text.name,
    meta: { sort: 'name' },
    cell: ({ row: { original } }) => <ResourceLink type="webhook" id={original.id} name={original.name} />,
  }),
  column.display({
    id: 'state',
    header: text.state,
    cell: ({ row: { original } }) => <WebhookState state={original.state} />,
  }),
  column.display({
    id: 'types',
    header: text.types,
    meta: { minor: true },
    cell: ({ row: { original } }) => original.types.map((type) => text.shortTypes[type]).join(', '),
  }),
  column.display({
    id: 'lag',
    header: text.lag,
    meta: { numeric: true },
    cell: ({ row: { original } }) => <Lag lag={original.lag} />,
  }),
  column.display({
    id: 'last',
    header: text.lastDelivery,
    meta: { minor: true },
    cell: ({ row: { original } }) => (original.last_delivery === null ? none : <Outcome {...original.last_delivery} />),
  }),
  column.display({
    id: 'at',
    header: text.at,
    meta: { minor: true },
    cell: ({ row: { original } }) => <When at={original.last_delivery?.at ?? null} />,
  }),
]);

export function WebhooksPage(): ReactNode {
  const search = useSearch({ from: '/webhooks' });
  const navigate = useNavigate({ from: '/webhooks' });
  return (
    <ResourceList
      text={text}
      search={search}
      onSearch={(next, replace) => void navigate({ search: next, replace })}
      query={useQuery(webhooksQuery(search))}
      columns={columns}
      add={<LinkButton to="/webhooks/new">{text.add}</LinkButton>}
    />
  );
}
