/** What was done last. */
import type { ReactNode } from 'react';
import { actorName } from '../shared/ui/actor.js';
import { columnsOf, DataTable } from '../shared/ui/data-table.js';
import { LinkButton, TextLink } from '../shared/ui/links.js';
import { ResourceLink } from '../shared/ui/resource-link.js';
import { Section } from '../shared/ui/section.js';
import { When } from '../shared/ui/when.js';
import type { Stats } from './overview.js';
import { text } from './overview.text.js';

type Entry = Stats['recent_audit'][number];

const column = columnsOf<Entry>();
const columns = column.columns([
  column.display({ id: 'at', header: text.at, cell: ({ row: { original } }) => <When at={original.at} /> }),
  column.display({
    id: 'actor',
    header: text.actor,
    meta: { minor: true },
    cell: ({ row: { original } }) => actorName(original.actor),
  }),
  column.display({
    id: 'action',
    header: text.action,
    cell: ({ row: { original } }) => (
      <TextLink to="/audit" search={{ entry: original.id }}>
        {original.action}
      </TextLink>
    ),
  }),
  column.display({
    id: 'resource',
    header: text.resource,
    cell: ({ row: { original } }) => <ResourceLink {...original.resource} />,
  }),
]);

export function Recent({ entries }: { readonly entries: readonly Entry[] }): ReactNode {
  return (
    <Section
      title={text.recent}
      actions={
        <LinkButton variant="subtle" to="/audit">
          {text.showAll}
        </LinkButton>
      }
    >
      <DataTable caption={text.recentCaption} columns={columns} rows={entries} rowKey={({ id }) => id} empty={null} />
    </Section>
  );
}
