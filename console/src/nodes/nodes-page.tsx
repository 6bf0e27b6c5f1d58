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

const columns = columnsOf<Node>([
  [text.name, (row) => <ResourceLink type="node" id={row.id} name={row.name} />, { sort: 'name' }],
  [text.status, (row) => <NodeStatus status={row.status} />],
  [text.configuration, (row) => <ApplyState state={row.apply.state} />],
  [text.listeners, (row) => <ListenerCount listeners={row.listeners} />, { numeric: true }],
  [text.cpu, (row) => (row.cpu_usage === null ? none : formatShare(row.cpu_usage)), { numeric: true, minor: true }],
  [
    text.memory,
    (row) => (row.memory_usage === null ? none : formatShare(row.memory_usage)),
    { numeric: true, minor: true },
  ],
  [text.agentVersion, (row) => row.agent_version ?? none, { minor: true }],
  [text.lastSeen, (row) => <When at={row.last_seen_at} />, { minor: true, sort: 'last_seen_at' }],
  [text.labelsColumn, (row) => <Labels labels={row.labels} />, { minor: true }],
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
