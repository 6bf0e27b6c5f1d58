/** The links of a node with others, as agents measured them. */
import { useQuery } from '@tanstack/react-query';
import { useMemo, type ReactNode } from 'react';
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

const columnsFor = (nodeId: string) =>
  columnsOf<Link>([
    [
      text.peer,
      (row) => {
        const dials = row.from_node_id === nodeId;
        return (
          <>
            {dials ? text.dialsIt : text.dialledBy}{' '}
            <NamedLink type="node" id={dials ? row.to_node_id : row.from_node_id} />
          </>
        );
      },
    ],
    [text.resource, (row) => <NamedLink type={row.kind} id={row.resource_id} />],
    [text.roundTrip, (row) => shown(row.rtt_ms, formatMilliseconds), { numeric: true }],
    [text.jitter, (row) => shown(row.jitter_ms, formatMilliseconds), { numeric: true, minor: true }],
    [text.loss, (row) => shown(row.loss_ratio, formatShare), { numeric: true, minor: true }],
    [
      text.bytesIn,
      (row) => shown(row.from_node_id === nodeId ? row.bytes_in : row.bytes_out, formatBytes),
      { numeric: true, minor: true },
    ],
    [
      text.bytesOut,
      (row) => shown(row.from_node_id === nodeId ? row.bytes_out : row.bytes_in, formatBytes),
      { numeric: true, minor: true },
    ],
    [text.measured, (row) => <When at={row.measured_at} />, { minor: true }],
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
