/** Listeners with an order of their own; of one node all listeners. */
import { Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useNavigate, useSearch } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { ResourceSelect } from '../shared/forms/resource-select.js';
import { useMay } from '../shared/session.js';
import { columnsOf, DataTable, pageSize } from '../shared/ui/data-table.js';
import { Empty } from '../shared/ui/empty.js';
import { formatCount } from '../shared/ui/format.js';
import { LinkButton, TextLink } from '../shared/ui/links.js';
import { Page } from '../shared/ui/page.js';
import { Problem } from '../shared/ui/problem.js';
import { ResourceLink } from '../shared/ui/resource-link.js';
import { State } from '../shared/ui/state.js';
import { listenersQuery } from './listener-policies.js';
import type { Listener } from './listener-policies.js';
import { text } from './listener-policies.text.js';

type Row = Listener & { readonly nodeName: string | null };

const column = columnsOf<Row>();
const columns = column.columns([
  column.display({
    id: 'listener',
    header: text.listener,
    cell: ({ row: { original } }) => <ListenerLink listener={original} />,
  }),
  column.display({
    id: 'node',
    header: text.node,
    cell: ({ row: { original } }) => <ResourceLink type="node" id={original.nodeId} name={original.nodeName} />,
  }),
  column.display({
    id: 'order',
    header: text.order,
    cell: ({ row: { original } }) => original.priorityOrder.map((kind) => text.kinds[kind]).join(' → '),
  }),
  column.display({
    id: 'state',
    header: text.state,
    cell: ({ row: { original } }) => (
      <State mood={original.policySaved ? 'good' : 'idle'}>{original.policySaved ? text.saved : text.default}</State>
    ),
  }),
  column.display({
    id: 'routes',
    header: text.routes,
    meta: { numeric: true, minor: true },
    cell: ({ row: { original } }) => formatCount(original.routes.length),
  }),
]);

function ListenerLink({ listener }: { readonly listener: Listener }): ReactNode {
  const mayEdit = useMay('operator');
  const { nodeId, transport, listenAddr, listenPort } = listener;
  const shown = `${transport} ${listenAddr}:${listenPort}`;
  if (!mayEdit) return shown;
  return (
    <TextLink
      to="/listener-policies/edit"
      search={{ node_id: nodeId, transport, listen_addr: listenAddr, listen_port: String(listenPort) }}
    >
      {shown}
    </TextLink>
  );
}

export function ListenerPoliciesPage(): ReactNode {
  const { node_id: nodeId, page = 1 } = useSearch({ from: '/listener-policies' });
  const navigate = useNavigate({ from: '/listener-policies' });
  const mayEdit = useMay('operator');
  const { data, error, refetch } = useQuery(listenersQuery(nodeId));
  const names = new Map(data?.nodes.map(({ id, name }) => [id, name]));
  const rows = data?.items
    .filter(({ policySaved }) => policySaved || nodeId !== undefined)
    .map((listener): Row => ({ ...listener, nodeName: names.get(listener.nodeId) ?? null }));
  return (
    <Page title={text.title} actions={mayEdit && <LinkButton to="/listener-policies/edit">{text.add}</LinkButton>}>
      <Text size="sm" maw={720}>
        {text.meaning}
      </Text>
      <ResourceSelect
        kind={{ type: 'node' }}
        ariaLabel={text.node}
        placeholder={text.anyNode}
        maw={360}
        clearable
        value={nodeId}
        onChange={(id) => void navigate({ search: { node_id: id || undefined }, replace: true })}
      />
      {rows === undefined && error !== null ? (
        <Problem error={error} retry={() => void refetch()} />
      ) : (
        <DataTable
          caption={text.caption}
          columns={columns}
          rows={rows?.slice((page - 1) * pageSize, page * pageSize)}
          rowKey={({ nodeId: id, transport, listenAddr, listenPort }) =>
            `${id} ${transport} ${listenAddr} ${listenPort}`
          }
          empty={
            <Empty title={nodeId === undefined ? text.emptyTitle : text.noListeners}>
              {nodeId === undefined ? text.empty : text.noListenersHint}
            </Empty>
          }
          paging={{
            page,
            total: rows?.length ?? 0,
            onPage: (to) => void navigate({ search: { node_id: nodeId, page: to } }),
          }}
        />
      )}
    </Page>
  );
}
