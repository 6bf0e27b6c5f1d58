/** The listeners of the fleet: what is intended beside what agents report. Its filters are in the address. */
import { Group, List, NumberInput } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useNavigate, useSearch } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { ResourceSelect } from '../shared/forms/resource-select.js';
import { pageSize } from '../shared/search.js';
import { Choices, type Choice } from '../shared/ui/choices.js';
import { columnsOf } from '../shared/ui/data-table.js';
import { Empty } from '../shared/ui/empty.js';
import { FilterBar } from '../shared/ui/filter-bar.js';
import { formatListener } from '../shared/ui/format.js';
import { ListTable } from '../shared/ui/list-table.js';
import { ListenerState } from '../shared/ui/listener-state.js';
import { TextLink } from '../shared/ui/links.js';
import { Page } from '../shared/ui/page.js';
import { ResourceLink } from '../shared/ui/resource-link.js';
import { portsQuery, type Port } from './ports.js';
import type { PortsSearch } from './ports-search.js';
import { text } from './ports.text.js';
import { UnexpectedListeners } from './unexpected-listeners.js';

type Row = Port & { readonly nodeName: string | null };

const columns = columnsOf<Row>([
  [text.node, (row) => <ResourceLink type="node" id={row.nodeId} name={row.nodeName} />, { cut: true }],
  [text.listener, (row) => formatListener(row.transport, row.listenAddr, row.listenPort)],
  [text.state, (row) => <RowState {...row} />],
  [text.usedBy, (row) => <Users routes={row.routes} />, { cut: true }],
  [
    text.leadsTo,
    (row) => (
      <List listStyleType="none" size="sm" styles={{ itemLabel: { overflowWrap: 'normal' } }}>
        {[...new Set(row.routes.map(({ nextHop }) => nextHop))].map((hop) => (
          <List.Item key={hop}>{hop === '' ? text.unresolved : hop}</List.Item>
        ))}
      </List>
    ),
    { minor: true },
  ],
  [text.order, (row) => (row.policySaved ? row.priorityOrder.join(' → ') : text.defaultOrder), { minor: true }],
]);

function RowState({ routes, runtimeState, runtimeStale }: Row): ReactNode {
  const deployed = routes.some((route) => route.deployed);
  return <ListenerState deployed={deployed} state={runtimeState} stale={runtimeStale} />;
}

/** The resources behind a listener, each once. */
function Users({ routes }: Pick<Port, 'routes'>): ReactNode {
  const users = new Map(routes.map((route) => [`${route.resourceType} ${route.resourceId}`, route]));
  return (
    <Group gap="xs">
      {[...users].map(([key, { resourceType, resourceId, resourceName }]) => (
        <span key={key}>
          <ResourceLink type={resourceType} id={resourceId} name={resourceName} />
        </span>
      ))}
    </Group>
  );
}

export function PortsPage(): ReactNode {
  const search = useSearch({ from: '/ports' });
  const navigate = useNavigate({ from: '/ports' });
  const { page = 1, ...filters } = search;
  const { data, error, refetch } = useQuery(portsQuery(filters));
  const names = new Map(data?.nodes.map(({ id, name }) => [id, name]));
  const rows = data?.items
    .slice((page - 1) * pageSize, page * pageSize)
    .map((port): Row => ({ ...port, nodeName: names.get(port.nodeId) ?? null }));
  return (
    <Page title={text.title}>
      <Filters search={search} />
      <ListTable
        caption={text.caption}
        columns={columns}
        query={{ data: rows && { items: rows, total: data?.items.length }, error, refetch }}
        rowKey={(row) => `${row.nodeId} ${row.transport} ${row.listenAddr} ${row.listenPort}`}
        empty={<Nothing filters={filters} />}
        paging={{ page, onPage: (to) => void navigate({ search: { ...search, page: to } }) }}
      />
      <UnexpectedListeners filters={filters} />
    </Page>
  );
}

function Nothing({ filters: { running, ...others } }: { readonly filters: Omit<PortsSearch, 'page'> }): ReactNode {
  const narrowed = Object.values(others).some((value) => value !== undefined);
  if (running === undefined && !narrowed) return <Empty title={text.emptyTitle}>{text.empty}</Empty>;
  return (
    <Empty title={running === 'false' && !narrowed ? text.nothingMissing : text.nothingFound}>
      <TextLink to="/ports">{text.clear}</TextLink>
    </Empty>
  );
}

const choices: readonly Choice<PortsSearch>[] = [
  { name: 'transport', label: text.transport, any: text.anyTransport, words: text.transports, width: 150 },
  { name: 'running', label: text.running, any: text.anyState, words: text.states, width: 150 },
];

function Filters({ search }: { readonly search: PortsSearch }): ReactNode {
  const navigate = useNavigate({ from: '/ports' });
  const filter = (changed: Partial<PortsSearch>): void =>
    void navigate({ search: { ...search, ...changed, page: undefined }, replace: true });
  return (
    <FilterBar
      find={
        <ResourceSelect
          kind={{ type: 'node' }}
          ariaLabel={text.node}
          placeholder={text.anyNode}
          clearable
          value={search.node_id}
          onChange={(id) => filter({ node_id: id || undefined })}
        />
      }
      folded
    >
      <Choices choices={choices} search={search} onFilter={filter} />
      <NumberInput
        aria-label={text.port}
        placeholder={text.anyPort}
        min={1}
        max={65_535}
        allowDecimal={false}
        hideControls
        value={search.listen_port ?? ''}
        onChange={(port) => filter({ listen_port: typeof port === 'number' ? port : undefined })}
        w={110}
      />
    </FilterBar>
  );
}
