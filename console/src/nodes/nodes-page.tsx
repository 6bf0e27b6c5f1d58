/** The list of nodes: by pages, as 10,000 of them need; its filters are in the address. */
import { Select, TagsInput } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useNavigate, useSearch } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { useMay } from '../shared/session.js';
import { columnsOf } from '../shared/ui/data-table.js';
import { formatShare, none } from '../shared/ui/format.js';
import { LinkButton } from '../shared/ui/links.js';
import { ResourceLink } from '../shared/ui/resource-link.js';
import { ResourceList } from '../shared/ui/resource-list.js';
import { When } from '../shared/ui/when.js';
import { Labels } from './labels.js';
import { ApplyState, ListenerCount, NodeStatus } from './node-state.js';
import { nodesQuery } from './nodes.js';
import type { Node } from './nodes.js';
import { applyStates, statuses } from './nodes-search.js';
import type { NodesSearch } from './nodes-search.js';
import { text } from './nodes.text.js';

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

export function NodesPage(): ReactNode {
  const search = useSearch({ from: '/nodes' });
  const navigate = useNavigate({ from: '/nodes' });
  const mayAdd = useMay('operator');
  const show = (next: NodesSearch, replace: boolean): void => void navigate({ search: next, replace });
  return (
    <ResourceList
      text={text}
      search={search}
      onSearch={show}
      query={useQuery(nodesQuery(search))}
      columns={columns}
      add={mayAdd && <LinkButton to="/nodes/new">{text.add}</LinkButton>}
      filters={<Filters search={search} onSearch={show} />}
    />
  );
}

const optionsOf = <W extends string>(words: readonly W[], labels: Readonly<Record<W, string>>) =>
  words.map((value) => ({ value, label: labels[value] }));

interface FiltersProps {
  readonly search: NodesSearch;
  readonly onSearch: (search: NodesSearch, replace: boolean) => void;
}

function Filters({ search, onSearch }: FiltersProps): ReactNode {
  const filter = (changed: Partial<NodesSearch>): void => onSearch({ ...search, ...changed, page: undefined }, true);
  return (
    <>
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
      <Select
        aria-label={text.listeners}
        placeholder={text.anyListeners}
        data={[{ value: 'missing', label: text.missingListeners }]}
        value={search.listeners ?? null}
        onChange={(chosen) => filter({ listeners: chosen === null ? undefined : 'missing' })}
        clearable
        w={180}
      />
      <TagsInput
        aria-label={text.labels}
        placeholder={search.label === undefined ? text.labels : ''}
        value={[...(search.label ?? [])]}
        onChange={(label) => filter({ label: label.length === 0 ? undefined : label })}
        miw={220}
      />
    </>
  );
}
