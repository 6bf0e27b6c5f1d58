/** One HTTP route: what it serves, and the nodes that its requests pass. */
import { useQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { columnsOf } from '../shared/ui/data-table.js';
import { EnabledState } from '../shared/ui/enabled-state.js';
import { formatAddress } from '../shared/ui/format.js';
import { ListTable } from '../shared/ui/list-table.js';
import { StateOf } from '../shared/ui/state-of.js';
import { ResourceLink } from '../shared/ui/resource-link.js';
import { ResourcePage, resourcePage } from '../shared/ui/resource-page.js';
import { Section } from '../shared/ui/section.js';
import { routeHopsQuery, routes, type RouteHop } from './routes.js';
import { text } from './routes.text.js';

export const RoutePage = resourcePage(routes, ({ resource: route }) => (
  <ResourcePage
    of={routes}
    resource={route}
    aside={<EnabledState enabled={route.enabled} />}
    removeMeaning={text.removeMeaning}
    facts={{
      [text.host]: route.host,
      [text.pathPrefix]: route.path_prefix,
      [text.backend]: route.backend,
    }}
  >
    <Hops id={route.id} />
  </ResourcePage>
));

const columns = columnsOf<RouteHop>([
  [text.place, (row) => row.index + 1, { numeric: true }],
  [text.node, (row) => <ResourceLink type="node" id={row.node_id} name={row.node_name} />],
  [text.status, (row) => <StateOf kind="node" is={row.node_status} />],
  [text.listens, (row) => formatAddress(row.listen_addr, row.listen_port)],
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
