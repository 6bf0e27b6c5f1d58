/** The sets: what each owns, when its document was applied last, and whether it was changed by hand since. */
import { Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { actorName } from '../shared/ui/actor.js';
import { columnsOf } from '../shared/ui/data-table.js';
import { Empty } from '../shared/ui/empty.js';
import { formatCount, none } from '../shared/ui/format.js';
import { TextLink } from '../shared/ui/links.js';
import { ListTable } from '../shared/ui/list-table.js';
import { Section } from '../shared/ui/section.js';
import { State } from '../shared/ui/state.js';
import { When } from '../shared/ui/when.js';
import { DownloadButton } from './download.js';
import { setsQuery } from './fleet-file.js';
import type { FleetSet } from './fleet-file.js';
import { text } from './fleet-file.text.js';

const column = columnsOf<FleetSet>();
const columns = column.columns([
  column.display({
    id: 'set',
    header: text.set,
    cell: ({ row: { original } }) => (
      <TextLink to="/fleet-file/sets/$set" params={{ set: original.set }}>
        {original.set}
      </TextLink>
    ),
  }),
  column.display({
    id: 'drift',
    header: text.drift,
    cell: ({ row: { original } }) => <Drift count={original.drift} />,
  }),
  column.display({
    id: 'owns',
    header: text.owns,
    meta: { numeric: true, minor: true },
    cell: ({ row: { original } }) => formatCount(ownedBy(original)),
  }),
  column.display({
    id: 'at',
    header: text.appliedAt,
    cell: ({ row: { original } }) => <When at={original.applied_at} />,
  }),
  column.display({
    id: 'actor',
    header: text.appliedBy,
    meta: { minor: true },
    cell: ({ row: { original } }) => (original.actor === null ? none : actorName(original.actor)),
  }),
]);

const ownedBy = ({ resources }: FleetSet): number => Object.values(resources).reduce((sum, count) => sum + count, 0);

/** How much was changed by hand. */
export function Drift({ count }: { readonly count: number }): ReactNode {
  return (
    <State mood={count === 0 ? 'good' : 'warning'}>
      {count === 0 ? text.noDrift : text.drifted(formatCount(count))}
    </State>
  );
}

export function Sets(): ReactNode {
  return (
    <Section title={text.sets} actions={<DownloadButton label={text.exportAll} />}>
      <ListTable
        caption={text.setsCaption}
        columns={columns}
        query={useQuery(setsQuery)}
        rowKey={({ set }) => set}
        empty={<Empty title={text.noSets}>{text.noSetsHint}</Empty>}
      />
      <Text size="sm" c="dimmed">
        {text.exportMeaning}
      </Text>
    </Section>
  );
}
