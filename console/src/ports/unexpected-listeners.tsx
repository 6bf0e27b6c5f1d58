/** Listeners that agents report and no deployed definition has. Shows nothing if there are none. */
import { Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { columnsOf, DataTable } from '../shared/ui/data-table.js';
import { formatCount, formatListener, none } from '../shared/ui/format.js';
import { ResourceLink } from '../shared/ui/resource-link.js';
import { Section } from '../shared/ui/section.js';
import { State } from '../shared/ui/state.js';
import { When } from '../shared/ui/when.js';
import { unexpectedQuery, type RuntimeListener } from './ports.js';
import type { PortsSearch } from './ports-search.js';
import { text } from './ports.text.js';

type Row = RuntimeListener & { readonly nodeId: string; readonly nodeName: string; readonly reportedAt: string | null };

/** One page of an agent's leftovers; more than these are one fault, not many. */
const shown = 50;

const columns = columnsOf<Row>([
  [text.node, (row) => <ResourceLink type="node" id={row.nodeId} name={row.nodeName} />],
  [text.listener, (row) => formatListener(row.transport, row.listenAddr, row.listenPort)],
  [text.state, (row) => <State mood="warning">{row.state}</State>],
  [
    text.sessions,
    (row) => (row.activeSessions === undefined ? none : formatCount(row.activeSessions)),
    { numeric: true, minor: true },
  ],
  [text.reported, (row) => <When at={row.reportedAt} />, { minor: true }],
]);

export function UnexpectedListeners({ filters }: { readonly filters: Omit<PortsSearch, 'page'> }): ReactNode {
  const nodes = useQuery(unexpectedQuery(filters)).data?.nodes ?? [];
  const rows = nodes.flatMap(({ nodeId, name: nodeName, reportedAt, listeners }) =>
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
        rowKey={(row) => `${row.nodeId} ${row.transport} ${row.listenAddr} ${row.listenPort}`}
        empty={null}
      />
    </Section>
  );
}
