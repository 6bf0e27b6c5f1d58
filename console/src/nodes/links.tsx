/** The links of a node with others, as agents measured them. */
import { useQuery } from '@tanstack/react-query';
import { useMemo } from 'react';
import type { ReactNode } from 'react';
import type { Schemas } from '../shared/api/client.js';
import { columnsOf } from '../shared/ui/data-table.js';
import { Empty } from '../shared/ui/empty.js';
import { formatBytes, formatMilliseconds, formatShare, none } from '../shared/ui/format.js';
import { ListTable } from '../shared/ui/list-table.js';
import { NamedLink } from '../shared/ui/named-link.js';
import { Section } from '../shared/ui/section.js';
import { When } from '../shared/ui/when.js';
import { linksQuery } from './nodes.js';
import { text } from './nodes.text.js';

type Link = Schemas['NodeLink'];

const shown = (value: number | null, format: (value: number) => string): string =>
  value === null ? none : format(value);

const column = columnsOf<Link>();
const columnsFor = (nodeId: string) =>
  column.columns([
    column.display({
      id: 'peer',
      header: text.peer,
      cell: ({ row: { original } }) => {
        const dials = original.from_node_id === nodeId;
        return (
          <>
            {dials ? text.dialsIt : text.dialledBy}{' '}
            <NamedLink type="node" id={dials ? original.to_node_id : original.from_node_id} />
          </>
        );
      },
    }),
    column.display({
      id: 'resource',
      header: text.resource,
      cell: ({ row: { original } }) => <NamedLink type={original.kind} id={original.resource_id} />,
    }),
    column.display({
      id: 'rtt',
      header: text.roundTrip,
      meta: { numeric: true },
      cell: ({ row: { original } }) => shown(original.rtt_ms, formatMilliseconds),
    }),
    column.display({
      id: 'jitter',
      header: text.jitter,
      meta: { numeric: true, minor: true },
      cell: ({ row: { original } }) => shown(original.jitter_ms, formatMilliseconds),
    }),
    column.display({
      id: 'loss',
      header: text.loss,
      meta: { numeric: true, minor: true },
      cell: ({ row: { original } }) => shown(original.loss_ratio, formatShare),
    }),
    column.display({
      id: 'in',
      header: text.bytesIn,
      meta: { numeric: true, minor: true },
      cell: ({ row: { original } }) =>
        shown(original.from_node_id === nodeId ? original.bytes_in : original.bytes_out, formatBytes),
    }),
    column.display({
      id: 'out',
      header: text.bytesOut,
      meta: { numeric: true, minor: true },
      cell: ({ row: { original } }) =>
        shown(original.from_node_id === nodeId ? original.bytes_out : original.bytes_in, formatBytes),
    }),
    column.display({
      id: 'measured',
      header: text.measured,
      meta: { minor: true },
      cell: ({ row: { original } }) => <When at={original.measured_at} />,
    }),
  ]);

export function Links({ nodeId }: { readonly nodeId: string }): ReactNode {
  return (
    <Section title={text.links}>
      <ListTable
        caption={text.linksCaption}
        columns={useMemo(() => columnsFor(nodeId), [nodeId])}
        query={useQuery(linksQuery(nodeId))}
        rowKey={(link) => `${link.from_node_id} ${link.to_node_id} ${link.resource_id}`}
        empty={<Empty title={text.noLinks}>{text.noLinksHint}</Empty>}
      />
    </Section>
  );
}
