/** Listeners that agents report and no deployed definition has. Nothing where there are none. */
import { Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { columnsOf, DataTable } from '../shared/ui/data-table.js';
import { formatCount, none } from '../shared/ui/format.js';
import { ResourceLink } from '../shared/ui/resource-link.js';
import { Section } from '../shared/ui/section.js';
import { State } from '../shared/ui/state.js';
import { When } from '../shared/ui/when.js';
import { listenerText } from './listener-text.js';
import { unexpectedQuery } from './ports.js';
import type { RuntimeListener } from './ports.js';
import type { PortsSearch } from './ports-search.js';
import { text } from './ports.text.js';

type Row = RuntimeListener & { readonly nodeId: string; readonly nodeName: string; readonly reportedAt: string | null };

/** A page of an agent's leftovers; more than these are one fault, not many. */
const shown = 50;

const column = columnsOf<Row>();
const columns = column.columns([
  column.display({
    id: 'node',
    header: text.node,
    cell: ({ row: { original } }) => <ResourceLink type="node" id={original.nodeId} name={original.nodeName} />,
  }),
  column.display({ id: 'listener', header: text.listener, cell: ({ row: { original } }) => listenerText(original) }),
  column.display({
    id: 'state',
    header: text.state,
    cell: ({ row: { original } }) => <State mood="warning">{original.state}</State>,
  }),
  column.display({
    id: 'sessions',
    header: text.sessions,
    meta: { numeric: true, minor: true },
    cell: ({ row: { original } }) =>
      original.activeSessions === undefined ? none : formatCount(original.activeSessions),
  }),
  column.display({
    id: 'reported',
    header: text.reported,
    meta: { minor: true },
    cell: ({ row: { original } }) => <When at={original.reportedAt} />,
  }),
]);

export function UnexpectedListeners({ filters }: { readonly filters: Omit<PortsSearch, 'page'> }): ReactNode {
  const { data = [] } = useQuery(unexpectedQuery(filters));
  const rows = data.flatMap(({ nodeId, name: nodeName, reportedAt, listeners }) =>
    listeners.map((listener): Row => ({ ...listener, nodeId, nodeName, reportedAt })),
  );
  if (rows.length === 0) return null;
  return (
    <Section title={`${text.unexpected} (${formatCount(rows.length)})`}>
      <Text size="sm" maw={720}>
        {text.unexpectedMeaning}
      </Text>
      <DataTable
        caption={text.unexpectedCaption}
        columns={columns}
        rows={rows.slice(0, shown)}
        rowKey={(row) => `${row.nodeId} ${listenerText(row)}`}
        empty={null}
      />
    </Section>
  );
}
