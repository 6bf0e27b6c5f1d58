/** What was done last. */
import type { ReactNode } from 'react';
import { EntrySentence } from '../shared/audit/entry-sentence.js';
import { columnsOf, DataTable } from '../shared/ui/data-table.js';
import { LinkButton, TextLink } from '../shared/ui/links.js';
import { Section } from '../shared/ui/section.js';
import { When } from '../shared/ui/when.js';
import type { Stats } from '../shared/dashboard.js';
import { text } from './overview.text.js';

type Entry = Stats['recent_audit'][number];

const columns = columnsOf<Entry>([
  [
    text.at,
    (row) => (
      <TextLink to="/audit" search={{ entry: row.id }}>
        <When at={row.at} />
      </TextLink>
    ),
  ],
  [text.action, (row) => <EntrySentence entry={row} />],
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
