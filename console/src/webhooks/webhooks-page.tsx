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

const columns = columnsOf<Webhook>([
  [text.name, (row) => <ResourceLink type="webhook" id={row.id} name={row.name} />, { sort: 'name' }],
  [text.state, (row) => <WebhookState state={row.state} />],
  [text.types, (row) => row.types.map((type) => text.shortTypes[type]).join(', '), { minor: true }],
  [text.lag, (row) => <Lag lag={row.lag} />, { numeric: true }],
  [
    text.lastDelivery,
    (row) => (row.last_delivery === null ? none : <Outcome {...row.last_delivery} />),
    { minor: true },
  ],
  [text.at, (row) => <When at={row.last_delivery?.at ?? null} />, { minor: true }],
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
