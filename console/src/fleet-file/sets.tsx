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
import { setsQuery, type FleetSet } from './fleet-file.js';
import { text } from './fleet-file.text.js';

const columns = columnsOf<FleetSet>([
  [
    text.set,
    (row) => (
      <TextLink to="/fleet-file/sets/$set" params={{ set: row.set }}>
        {row.set}
      </TextLink>
    ),
  ],
  [text.drift, (row) => <Drift count={row.drift} />],
  [text.owns, (row) => formatCount(ownedBy(row)), { numeric: true, minor: true }],
  [text.appliedAt, (row) => <When at={row.applied_at} />],
  [text.appliedBy, (row) => (row.actor === null ? none : actorName(row.actor)), { minor: true }],
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
