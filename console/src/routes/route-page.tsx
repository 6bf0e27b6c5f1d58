/** One HTTP route: what it serves, and the nodes that its requests pass. */
import { useQuery } from '@tanstack/react-query';
import { useParams } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { columnsOf } from '../shared/ui/data-table.js';
import { EnabledState } from '../shared/ui/enabled-state.js';
import { Facts } from '../shared/ui/facts.js';
import { ListTable } from '../shared/ui/list-table.js';
import { Page } from '../shared/ui/page.js';
import { Problem } from '../shared/ui/problem.js';
import { ResourceActions } from '../shared/ui/resource-actions.js';
import { ResourceLink } from '../shared/ui/resource-link.js';
import { Section } from '../shared/ui/section.js';
import { State } from '../shared/ui/state.js';
import type { Mood } from '../shared/ui/state.js';
import { When } from '../shared/ui/when.js';
import { deleteRoute, routeHopsQuery, routeQuery } from './routes.js';
import type { RouteHop } from './routes.js';
import { text } from './routes.text.js';

export function RoutePage(): ReactNode {
  const { id } = useParams({ from: '/routes/$id' });
  const { data: route, error, refetch } = useQuery(routeQuery(id));
  if (route === undefined) return error && <Problem error={error} retry={() => void refetch()} />;
  return (
    <Page
      title={route.name}
      aside={<EnabledState enabled={route.enabled} />}
      actions={
        <ResourceActions
          type="route"
          id={id}
          name={route.name}
          edit={{ to: '/routes/$id/edit', params: { id } }}
          remove={{ run: () => deleteRoute(id), meaning: text.removeMeaning, list: { to: '/routes' } }}
        />
      }
    >
      <Section title={text.details}>
        <Facts
          facts={{
            [text.host]: route.host,
            [text.pathPrefix]: route.path_prefix,
            [text.backend]: route.backend,
            [text.managedBy]: route.managed_by,
            [text.created]: <When at={route.created_at} />,
            [text.updated]: <When at={route.updated_at} />,
          }}
        />
      </Section>
      <Hops id={id} />
    </Page>
  );
}

const moods: Readonly<Record<RouteHop['node_status'], Mood>> = { online: 'good', offline: 'bad', pending: 'idle' };

const columns = columnsOf<RouteHop>([
  [text.place, (row) => row.index + 1, { numeric: true }],
  [text.node, (row) => <ResourceLink type="node" id={row.node_id} name={row.node_name} />],
  [text.status, (row) => <State mood={moods[row.node_status]}>{text.nodeStates[row.node_status]}</State>],
  [text.listens, (row) => `${row.listen_addr}:${row.listen_port}`],
  [text.next, (row) => row.next_hop],
]);

function Hops({ id }: { readonly id: string }): ReactNode {
  return (
    <Section title={text.hops}>
      <ListTable
        caption={text.hopsCaption}
        columns={columns}
        query={useQuery(routeHopsQuery(id))}
        rowKey={({ index }) => String(index)}
        empty={null}
      />
    </Section>
  );
}
