/** What was done last. */
import type { ReactNode } from 'react';
import { entryColumns } from '../shared/audit/entry-sentence.js';
import { DataTable } from '../shared/ui/data-table.js';
import { LinkButton } from '../shared/ui/links.js';
import { Section } from '../shared/ui/section.js';
import type { Stats } from '../shared/dashboard.js';
import { text } from './overview.text.js';

const columns = entryColumns(text.at, text.action);

export function Recent({ entries }: { readonly entries: Stats['recent_audit'] }): ReactNode {
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
