/** The list of nodes: by pages, as 10,000 of them need; its filters are in the address. */
import { Badge, Group, Select, TagsInput, TextInput } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useNavigate, useSearch } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { columnsOf } from '../shared/ui/data-table.js';
import { Empty } from '../shared/ui/empty.js';
import { formatShare, none } from '../shared/ui/format.js';
import { Page } from '../shared/ui/page.js';
import { ResourceLink } from '../shared/ui/resource-link.js';
import { useTyped } from '../shared/ui/typed.js';
import { When } from '../shared/ui/when.js';
import { ApplyState, ListenerCount, NodeStatus } from './node-state.js';
import { nodesQuery } from './nodes.js';
import type { Node } from './nodes.js';
import { applyStates, statuses } from './nodes-search.js';
import type { NodesSearch } from './nodes-search.js';
import { text } from './nodes.text.js';
import { TextLink } from '../shared/ui/links.js';
import { ListTable } from '../shared/ui/list-table.js';

const column = columnsOf<Node>();
const columns = column.columns([
  column.display({
    id: 'name',
    header: text.name,
    meta: { sort: 'name' },
    cell: ({ row: { original } }) => <ResourceLink type="node" id={original.id} name={original.name} />,
  }),
  column.display({
    id: 'status',
    header: text.status,
    cell: ({ row: { original } }) => <NodeStatus status={original.status} />,
  }),
  column.display({
    id: 'apply',
    header: text.configuration,
    cell: ({ row: { original } }) => <ApplyState state={original.apply.state} />,
  }),
  column.display({
    id: 'listeners',
    header: text.listeners,
    meta: { numeric: true },
    cell: ({ row: { original } }) => <ListenerCount listeners={original.listeners} />,
  }),
  column.display({
    id: 'cpu',
    header: text.cpu,
    meta: { numeric: true, minor: true },
    cell: ({ row: { original } }) => (original.cpu_usage === null ? none : formatShare(original.cpu_usage)),
  }),
  column.display({
    id: 'memory',
    header: text.memory,
    meta: { numeric: true, minor: true },
    cell: ({ row: { original } }) => (original.memory_usage === null ? none : formatShare(original.memory_usage)),
  }),
  column.display({
    id: 'agent',
    header: text.agentVersion,
    meta: { minor: true },
    cell: ({ row: { original } }) => original.agent_version ?? none,
  }),
  column.display({
    id: 'seen',
    header: text.lastSeen,
    meta: { minor: true, sort: 'last_seen_at' },
    cell: ({ row: { original } }) => <When at={original.last_seen_at} />,
  }),
  column.display({
    id: 'labels',
    header: text.labelsColumn,
    meta: { minor: true },
    cell: ({ row: { original } }) => <Labels labels={original.labels} />,
  }),
]);

export function Labels({ labels }: Pick<Node, 'labels'>): ReactNode {
  return (
    <Group gap={4}>
      {Object.entries(labels).map(([key, value]) => (
        <Badge key={key} variant="default" tt="none" fw={400} size="sm">
          {key}: {value}
        </Badge>
      ))}
    </Group>
  );
}

export function NodesPage(): ReactNode {
  const search = useSearch({ from: '/nodes' });
  const navigate = useNavigate({ from: '/nodes' });
  const query = useQuery(nodesQuery(search));
  const { page, sort, ...filters } = search;
  const filtered = Object.values(filters).some((value) => value !== undefined);
  return (
    <Page title={text.title}>
      <Filters search={search} />
      <ListTable
        caption={text.caption}
        columns={columns}
        query={query}
        rowKey={({ id }) => id}
        empty={
          <Empty title={filtered ? text.nothingFound : text.emptyTitle}>
            {filtered ? <TextLink to="/nodes">{text.clear}</TextLink> : text.empty}
          </Empty>
        }
        paging={{
          page: page ?? 1,
          onPage: (to) => void navigate({ search: { ...search, page: to } }),
        }}
        sorting={{
          sort: sort ?? 'name',
          onSort: (by) => void navigate({ search: { ...search, sort: by as typeof sort, page: undefined } }),
        }}
      />
    </Page>
  );
}

const optionsOf = <W extends string>(words: readonly W[], labels: Readonly<Record<W, string>>) =>
  words.map((value) => ({ value, label: labels[value] }));

function Filters({ search }: { readonly search: NodesSearch }): ReactNode {
  const navigate = useNavigate({ from: '/nodes' });
  const filter = (changed: Partial<NodesSearch>): void =>
    void navigate({ search: { ...search, ...changed, page: undefined }, replace: true });
  const find = useTyped(search.q ?? '', (q) => filter({ q }));
  return (
    <Group gap="xs">
      <TextInput {...find} aria-label={text.find} placeholder={text.find} type="search" w={220} />
      <Select
        aria-label={text.status}
        placeholder={text.anyStatus}
        data={optionsOf(statuses, text.statuses)}
        value={search.status ?? null}
        onChange={(status) => filter({ status: status ?? undefined })}
        clearable
        w={170}
      />
      <Select
        aria-label={text.configuration}
        placeholder={text.anyApply}
        data={optionsOf(applyStates, text.applyStates)}
        value={search.apply ?? null}
        onChange={(apply) => filter({ apply: apply ?? undefined })}
        clearable
        w={190}
      />
      <TagsInput
        aria-label={text.labels}
        placeholder={search.label === undefined ? text.labels : ''}
        value={[...(search.label ?? [])]}
        onChange={(label) => filter({ label: label.length === 0 ? undefined : label })}
        miw={220}
      />
    </Group>
  );
}
