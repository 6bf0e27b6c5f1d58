/** The list of nodes: in pages, because there may be 10,000; its filters are in the address. */
import { TagsInput, Text } from '@mantine/core';
import type { ReactNode } from 'react';
import type { SearchOf } from '../shared/api/crud.js';
import { columnsOf } from '../shared/ui/data-table.js';
import { formatShare, none } from '../shared/ui/format.js';
import { listPage, nameColumn, type FiltersProps } from '../shared/ui/list-page.js';
import { StateOf } from '../shared/ui/state-of.js';
import { wordsOf } from '../shared/ui/states.js';
import { When } from '../shared/ui/when.js';
import { Labels } from '../shared/ui/labels.js';
import { ListenerCount } from './listener-count.js';
import { ChosenNodes } from './chosen-nodes.js';
import { NodeCounts } from './node-counts.js';
import { nodes, type Node } from './nodes.js';
import { text } from './nodes.text.js';

/** Of a node that is not online it is what its agent said last. */
const said = ({ status }: Node, value: ReactNode): ReactNode =>
  status === 'online' || value === none ? (
    value
  ) : (
    <Text span inherit c="dimmed">
      {value}
    </Text>
  );

const columns = columnsOf<Node>([
  nameColumn('node'),
  [text.status, (row) => <StateOf kind="node" is={row.status} />, { sort: 'status' }],
  [text.configuration, (row) => <StateOf kind="apply" is={row.apply.state} />],
  [text.listeners, (row) => said(row, <ListenerCount listeners={row.listeners} />), { numeric: true }],
  [
    text.cpu,
    (row) => said(row, row.cpu_usage === null ? none : formatShare(row.cpu_usage)),
    { numeric: true, minor: true },
  ],
  [
    text.memory,
    (row) => said(row, row.memory_usage === null ? none : formatShare(row.memory_usage)),
    { numeric: true, minor: true },
  ],
  [
    text.labelsColumn,
    (row) => (Object.keys(row.labels).length === 0 ? none : <Labels labels={row.labels} />),
    { minor: true, cut: true },
  ],
  [text.lastSeen, (row) => <When at={row.last_seen_at} />, { minor: true, sort: 'last_seen_at' }],
  [text.agentVersion, (row) => row.agent_version ?? none, { minor: true, cut: true }],
]);

export const NodesPage = listPage({
  of: nodes,
  text,
  columns,
  choices: [
    { name: 'apply', label: text.configuration, any: text.anyApply, words: wordsOf('apply'), width: 190 },
    { name: 'listeners', label: text.listeners, any: text.anyListeners, words: text.listenerChoices, width: 180 },
  ],
  Filters: LabelFilter,
  Counts: NodeCounts,
  Chosen: ChosenNodes,
  find: text.find,
});

function LabelFilter({ search, onFilter }: FiltersProps<SearchOf<'node'>>): ReactNode {
  return (
    <TagsInput
      aria-label={text.labels}
      placeholder={search.label === undefined ? text.labels : ''}
      value={search.label ?? []}
      onChange={(label) => onFilter({ label: label.length === 0 ? undefined : label })}
      miw={220}
    />
  );
}
