/** Listeners with an order of their own; for one node, all listeners. */
import { Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useNavigate, useSearch } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { ResourceSelect } from '../shared/forms/resource-select.js';
import { useMay } from '../shared/session.js';
import { pageSize } from '../shared/search.js';
import { columnsOf } from '../shared/ui/data-table.js';
import { Empty } from '../shared/ui/empty.js';
import { formatCount, formatListener } from '../shared/ui/format.js';
import { LinkButton, TextLink } from '../shared/ui/links.js';
import { ListTable } from '../shared/ui/list-table.js';
import { Page } from '../shared/ui/page.js';
import { ResourceLink } from '../shared/ui/resource-link.js';
import { State } from '../shared/ui/state.js';
import { listenersQuery, type Listener } from './listener-policies.js';
import { text } from './listener-policies.text.js';

type Row = Listener & { readonly nodeName: string | null };

const columns = columnsOf<Row>([
  [text.listener, (row) => <ListenerLink listener={row} />],
  [text.node, (row) => <ResourceLink type="node" id={row.nodeId} name={row.nodeName} />],
  [text.order, (row) => row.priorityOrder.map((kind) => text.kinds[kind]).join(' → ')],
  [
    text.state,
    (row) => <State mood={row.policySaved ? 'good' : 'idle'}>{row.policySaved ? text.saved : text.default}</State>,
  ],
  [text.routes, (row) => formatCount(row.routes.length), { numeric: true, minor: true }],
]);

function ListenerLink({ listener }: { readonly listener: Listener }): ReactNode {
  const mayEdit = useMay('operator');
  const { nodeId, transport, listenAddr, listenPort } = listener;
  const shown = formatListener(transport, listenAddr, listenPort);
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
  const shown = rows?.slice((page - 1) * pageSize, page * pageSize) ?? [];
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
      <ListTable
        caption={text.caption}
        columns={columns}
        query={{ data: rows && { items: shown, total: rows.length }, error, refetch }}
        rowKey={({ nodeId: id, transport, listenAddr, listenPort }) => `${id} ${transport} ${listenAddr} ${listenPort}`}
        empty={
          <Empty title={nodeId === undefined ? text.emptyTitle : text.noListeners}>
            {nodeId === undefined ? text.empty : text.noListenersHint}
          </Empty>
        }
        paging={{ page, onPage: (to) => void navigate({ search: { node_id: nodeId, page: to } }) }}
      />
    </Page>
  );
}
